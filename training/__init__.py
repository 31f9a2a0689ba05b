"""Snapshots in, bundles out: training, evaluation and export."""
