"""Made-up rows of every task, of which all follow a rule that two small layers can learn."""

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.types import Split
from training.device import NumberFormat
from training.heads.choices import MultipleChoice
from training.heads.run import HeadRun
from training.heads.spans import AnswerSpans
from training.heads.tokens import TokenLabelling
from training.heads.tuning import AnyTask, HeadOptions
from training.loop import Options

PLACES = ("房间", "酒店", "早餐", "服务员", "价格")
WORDS = ("干净", "便宜", "吵闹", "贵", "快", "慢")
FILLERS = ("上次", "中午", "来时", "这年", "有时", "他在时", "我来时", "人在时")


def tagged(n_rows: int, *, seed: int) -> list[dict[str, Any]]:
    """Texts that say something of one or two places."""
    rng = random.Random(seed)
    rows = []
    for _ in range(n_rows):
        text, entities = "", []
        for _ in range(rng.choice((1, 2))):
            for part, label in ((rng.choice(FILLERS), None), (rng.choice(PLACES), "事物"), (rng.choice(WORDS), "评价")):
                if label:
                    entities.append({"start": len(text), "end": len(text) + len(part), "label": label})
                text += part
            text += "，"
        rows.append({"text": text, "entities": entities})
    return rows


def asked(n_rows: int, *, seed: int) -> list[dict[str, Any]]:
    """Questions for the place or for what is said of it; a fourth of the contexts say nothing."""
    rng = random.Random(seed)
    rows = []
    for number in range(n_rows):
        before, place, word = rng.choice(FILLERS), rng.choice(PLACES), rng.choice(WORDS)
        question, answer = rng.choice((("在酒店？", place), ("好不好？", word)))
        after = rng.choice(FILLERS)
        if number % 4 == 0:
            rows.append({"question": question, "context": f"{before}{after}不了。", "answer": None})
            continue
        context = f"{before}{place}{word}，{after}。"
        rows.append(
            {"question": question, "context": context, "answer": {"start": context.index(answer), "text": answer}}
        )
    return rows


def chosen(n_rows: int, *, seed: int) -> list[dict[str, Any]]:
    """Questions for a place or for what is said of it, and two to four choices: one place, one saying, and neither."""
    rng = random.Random(seed)
    rows = []
    for _ in range(n_rows):
        kinds = [PLACES, WORDS, *[FILLERS] * rng.randint(0, 2)]
        rng.shuffle(kinds)
        question, wanted = rng.choice((("在酒店？", PLACES), ("好不好？", WORDS)))
        choices = [f"{rng.choice(FILLERS)}{rng.choice(kind)}" for kind in kinds]
        rows.append({"text": question, "choices": choices, "answer": kinds.index(wanted)})
    return rows


MAKERS = {"tokens": tagged, "span": asked, "choice": chosen}
# task → how it begins, its train rows, and its passes over them
TASKS: dict[str, tuple[AnyTask, int, int]] = {
    "tokens": (TokenLabelling(), 200, 3),
    "span": (AnswerSpans(), 300, 7),
    "choice": (MultipleChoice(), 240, 6),
}


@dataclass(frozen=True)
class Tuned:
    """A finished run, and the files that it was made of."""

    run: HeadRun
    files: dict[Split, Path]


def write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def options(start: Path, *, epochs: int = 8, max_length: int = 32, stride: int = 16, **changes: Any) -> HeadOptions:
    """Large steps, and few."""
    loop = Options(
        epochs=epochs, batch_size=16, learning_rate=2e-3, head_learning_rate=2e-3, evaluations_per_epoch=1,
        patience=9, precision=NumberFormat.FP32,
    )  # fmt: skip
    return HeadOptions(init=str(start), max_length=max_length, stride=stride, dropout=0.0, loop=loop, **changes)
