"""Lengths: how long the texts are, and how many are cut by what a model reads."""

from pathlib import Path
from shlex import quote
from typing import NamedTuple

import numpy as np

from app.library.doctor.census import Census
from app.library.doctor.findings import Example, Finding, Kind, Severity
from app.library.doctor.measures import Measures
from app.library.doctor.shares import EXAMPLES, graded, percent
from model.reports.plots import histogram

# Of all texts, those that are cut. What stands at the end of a long text often decides.
NOTABLE, SERIOUS = 0.01, 0.1
LONGEST = 512  # tokens that a BERT has positions for
QUANTILES = (0, 5, 25, 50, 75, 95, 99, 100)


class Limit(NamedTuple):
    """How many tokens a model reads, and the bundle that says so, if it was asked."""

    tokens: int
    bundle: str | None = None


def examine_lengths(census: Census, measures: Measures, limit: Limit, snapshot: Path | None = None) -> Finding:
    """Characters and tokens of the texts, against the limit; `snapshot`: the folder to train on, where one is known."""
    is_exact = measures.tokens is not None
    tokens = measures.tokens if measures.tokens is not None else measures.estimated_tokens()
    cut = np.flatnonzero(tokens > limit.tokens)
    quantiles = _quantiles(measures.lengths)
    fitting = int(np.ceil(np.percentile(tokens, 99) / 16) * 16) if len(tokens) else 0
    share = percent(len(cut), len(census))
    about, about_en = ("", "") if is_exact else ("约 ", "about ")
    severity = graded(len(cut) / max(len(census), 1), notable=NOTABLE, serious=SERIOUS)
    longer = min(fitting, LONGEST) if severity is not Severity.FINE and min(fitting, LONGEST) > limit.tokens else None
    return Finding(
        kind=Kind.LENGTHS,
        severity=severity,
        count=len(cut),
        summary=f"字数中位 {quantiles['50']:,}，95% 不超过 {quantiles['95']:,}，最长 {quantiles['100']:,}；"
        f"{about}{len(cut):,} 条（{share}）超过 {limit.tokens} 个词元而被截断",
        summary_en=f"median {quantiles['50']:,} characters, 95% up to {quantiles['95']:,}, longest "
        f"{quantiles['100']:,}; {about_en}{len(cut):,} ({share}) pass {limit.tokens} tokens and are cut",
        figures={
            "max_length": limit.tokens,
            "bundle": limit.bundle,
            "exact": is_exact,
            "cut": len(cut),
            "fitting": fitting,
            "characters": quantiles,
            "tokens": _quantiles(tokens),
            "plots": [
                histogram("字数", "Characters", measures.lengths, x="字 characters"),
                histogram(
                    "词元数" if is_exact else "词元数（估计）",
                    "Tokens" if is_exact else "Tokens (estimated)",
                    tokens,
                    x="词元 tokens",
                    mark=limit.tokens,
                    mark_name=f"max_length {limit.tokens}",
                ),
            ],
        },
        examples=tuple(
            Example(
                census.ids[row],
                census.labels(row),
                why=f"{about}{tokens[row]:,} 词元 tokens, {measures.lengths[row]:,} 字 characters",
            )
            for row in cut[np.argsort(-tokens[cut], kind="stable")][:EXAMPLES].tolist()
        ),
        commands=_commands(census.name, snapshot, longer) if longer else (),
    )


def _commands(library: str, snapshot: Path | None, longer: int) -> tuple[str, ...]:
    train = (
        f"wenlei train --snapshot {quote(str(snapshot)) if snapshot else 'FOLDER'} --arch bert --max-length {longer}"
    )
    # the first prints the folder that the second takes
    return (train,) if snapshot else (f"wenlei library snapshot --library {library}", train)


def _quantiles(values: np.ndarray) -> dict[str, int]:
    if not len(values):
        return dict.fromkeys(map(str, QUANTILES), 0)
    found = np.percentile(values, QUANTILES, method="inverted_cdf")
    return {str(place): int(value) for place, value in zip(QUANTILES, found, strict=True)}
