"""Pretrains a tiny BERT on made windows, also in processes of its own.

    python pretrain_made.py FOLDER STEPS DROPOUT [PORT]

With a port it is two processes that find each other there.
"""

import os
import sys
from pathlib import Path

import torch
from made_windows import MadeWindows, tiny_bert

from model.errors import BadInput
from training.device import NumberFormat
from training.pretrain.curves import CurveFile
from training.pretrain.loop import Pretraining
from training.pretrain.options import Options
from training.pretrain.processes import Processes, join_processes


def pretrain_made(folder: Path, *, steps: int, dropout: float) -> None:
    """The run lies in `folder`; broken off there, it goes on."""
    folder.mkdir(exist_ok=True)
    options = Options(
        steps=steps,
        learning_rate=3e-3,
        batch_tokens=256,
        max_length=32,
        precision=NumberFormat.FP32,
        evaluations=4,
        warmup_steps=0,
        checkpoint_seconds=0.1,
    )
    with join_processes() as processes:
        objective = tiny_bert(
            folder / f"vocabulary-{processes.rank}", hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout
        )
        Pretraining(
            objective=objective,
            windows=MadeWindows(),
            options=options,
            seed=5,
            checkpoint=folder / "checkpoint",
            curves=CurveFile(folder / "curves.jsonl"),
            processes=processes,
        ).run()
        if processes.is_first:
            objective.save(folder / "model")
        if processes.world > 1:
            (folder / f"ended-{processes.rank}").write_text(ended_by_the_first(processes))


def ended_by_the_first(processes: Processes) -> str:
    """What a process gets from work of the first one, and how it ends when that fails."""

    def refuse() -> None:
        raise BadInput("no corpus")

    given = processes.first(lambda: f"made by {processes.rank}")
    try:
        processes.first(refuse)
    except (BadInput, SystemExit) as ended:
        return f"{given}; {ended!r}"
    return f"{given}; not ended"


def in_two_processes(folder: Path, *, steps: int, dropout: float, port: int) -> int:
    """As torchrun starts them, but that both come of this one, so that torch is imported once; the second's status."""
    child = os.fork()
    rank = "0" if child else "1"
    os.environ |= {"TORCHELASTIC_RUN_ID": "test", "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    pretrain_made(folder, steps=steps, dropout=dropout)
    return os.waitpid(child, 0)[1] if child else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, steps, dropout, *port = sys.argv[1:]
    if port:
        sys.exit(in_two_processes(Path(folder), steps=int(steps), dropout=float(dropout), port=int(port[0])))
    pretrain_made(Path(folder), steps=int(steps), dropout=float(dropout))
