"""The gate: machine labels are accepted only under a stated bound on their error; docs/gate.md."""
