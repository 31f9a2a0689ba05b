"""Texts that are made of those of train, where there is no pool: only those that the teachers read as the original."""

import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from model.console import progress, say
from model.files import write_text
from model.metrics import activate, predicted_matrix
from model.types import FloatArray, Sample, Taxonomy, Text
from training.distillation.replacing import Replacer, replaced
from training.distillation.texts import near_held_out

KEPT = "augmented.jsonl"


class Augment(StrEnum):
    """Where other words come from."""

    NONE = "none"
    MASKED_LM = "masked-lm"
    NEIGHBOURS = "neighbours"


def augment(
    texts: Sequence[Text],
    make_replacer: Callable[[], Replacer],
    *,
    copies: int,
    seed: int,
    taxonomy: Taxonomy,
    held_out: Sequence[Sample],
    answers: Callable[[Sequence[Text]], FloatArray],
    folder: Path,
) -> list[Text]:
    """Up to `copies` new texts of each of `texts`, kept in `folder` so that they are made once.

    make_replacer: reads what finds other words, which may be large. answers: the teachers' logits. What they give other
    labels than the original falls away, and so do near duplicates of `held_out`.
    """
    if not (folder / KEPT).exists():
        made = _made(texts, make_replacer(), copies, seed)
        agreeing = _agree([answers(list(each)) for each in zip(*made, strict=True)], taxonomy)
        kept = [other for (_, other), agrees in zip(made, agreeing, strict=True) if agrees]
        near = near_held_out(kept, held_out)
        kept = [text for text, is_near in zip(kept, near, strict=True) if not is_near]
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / KEPT, "".join(json.dumps(list(text), ensure_ascii=False) + "\n" for text in kept))
        say(
            f"增广：{len(made):,} 条中教师意见一致且与开发、测试集不近的 {len(kept):,} 条 | augmented: {len(kept):,} "
            f"of {len(made):,} texts, with the labels of their originals and not near dev or test"
        )
    lines = (folder / KEPT).read_text(encoding="utf-8").splitlines()
    return [Text(*json.loads(line)) for line in lines]


def _made(texts: Sequence[Text], replacer: Replacer, copies: int, seed: int) -> list[tuple[Text, Text]]:
    known = set(texts)
    made: dict[Text, Text] = {}
    with progress("增广 augmenting", len(texts)) as advance:
        done: Text | None = None
        for one, other in replaced(texts, replacer, copies=copies, seed=seed):
            if one is not done:
                advance(1)
                done = one
            if other not in known:
                made.setdefault(other, one)
    return [(one, other) for other, one in made.items()]


def _agree(answers: Sequence[FloatArray], taxonomy: Taxonomy) -> NDArray[np.bool_]:
    """Which rows of both logits (n_texts, n_labels) give the same labels: (n_texts,); none where nothing was asked."""
    if not answers:
        return np.zeros(0, np.bool_)
    originals, others = (predicted_matrix(activate(each, taxonomy.activation), taxonomy, None) for each in answers)
    same: NDArray[np.bool_] = (originals == others).all(1)
    return same
