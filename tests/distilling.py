"""Small teachers and students, for tests of distillation."""

from dataclasses import replace
from pathlib import Path

from model.run import Run
from model.snapshot import Snapshot
from training.device import NumberFormat
from training.distillation.lesson import DistillOptions
from training.distillation.recipe import DistillRecipe
from training.finetune import FinetuneOptions, finetune
from training.kinds import BertKind
from training.loop import Options
from training.recipe import train

FAST = Options(epochs=4, batch_size=16, learning_rate=3e-3, head_learning_rate=3e-3, precision=NumberFormat.FP32)
STAGE = replace(FAST, patience=8)
STUDENT = {"layers": 1, "hidden_size": 24, "inner_size": 48}
POOL = [f"{time}{place}很{word}" for time in ("这次", "上回") for place in ("房间", "早餐") for word in ("干净", "慢")]


def teach(snapshot: Snapshot, start: Path, out: Path) -> Run:
    options = FinetuneOptions(init=str(start), max_length=32, loop=FAST)
    return finetune(snapshot, options=options, seed=1, out=out, cache=out.parent, kind=BertKind())


def options(student: str, **changes: object) -> DistillOptions:
    chosen = DistillOptions(student=student, max_length=32, general=STAGE, by_layers=STAGE, by_answers=STAGE)
    return replace(chosen, **changes)  # type: ignore[arg-type]


def distil(snapshot: Snapshot, teachers: list[Path], chosen: DistillOptions, out: Path, home: Path) -> Run:
    return train(snapshot, DistillRecipe.resolve(snapshot, teachers, chosen, seed=1, home=home), out=out)


def pool_file(folder: Path, *texts: str) -> Path:
    path = folder / "pool.txt"
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path
