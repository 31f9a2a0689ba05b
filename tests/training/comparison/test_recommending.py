"""What is recommended, from figures that are made up."""

from typing import Any, cast

import pytest

from model.comparison import CandidateShape, PairShape
from training.comparison.recommending import recommend


def candidate(name: str, accuracy: float, *, size: float = 100, p50: float | None = None) -> CandidateShape:
    speed = {} if p50 is None else {"fp32": {"p50_ms": p50}}
    figures = {"accuracy": {"value": accuracy, "low": accuracy - 0.01, "high": accuracy + 0.01}}
    return cast(CandidateShape, {"name": name, "figures": figures, "size_mib": size, "speed": speed})


def pair(one: str, other: str, *, p: float, not_worse: bool = False, value: float = 0.01) -> PairShape:
    difference = {"value": value, "low": value - 0.012, "high": value + 0.012, "p": p, "p_holm": p}
    made: dict[str, Any] = {"one": one, "other": other, "differences": {"accuracy": difference}}
    return cast(PairShape, {**made, "equivalence": {"not_worse": not_worse, "equivalent": False}})


def test_the_cheapest_that_is_no_worse_is_taken() -> None:
    given = [candidate("大", 0.9, p50=20), candidate("中", 0.899, p50=8), candidate("小", 0.897, p50=2)]
    found = recommend(
        given, [pair("大", "中", p=0.4, not_worse=True), pair("大", "小", p=0.2, not_worse=True)],
        metric="accuracy", margin=0.5,
    )  # fmt: skip
    assert found["candidate"] == "小"
    assert "快 10.0 倍" in found["reason"]
    assert "within" not in found["reason_en"]
    assert "10.0 times faster" in found["reason_en"]


def test_without_speed_the_size_decides() -> None:
    given = [candidate("大", 0.9, size=400), candidate("小", 0.899, size=50)]
    found = recommend(given, [pair("大", "小", p=0.4, not_worse=True)], metric="accuracy", margin=0.5)
    assert found["candidate"] == "小"
    assert "小 8.0 倍" in found["reason"]


def test_a_lead_that_is_no_chance_wins_whatever_it_costs() -> None:
    given = [candidate("大", 0.9, p50=20), candidate("小", 0.88, p50=1)]
    found = recommend(given, [pair("大", "小", p=0.001, value=0.02)], metric="accuracy", margin=0.5)
    assert found["candidate"] == "大"
    assert "领先第二名 小 2.00" in found["reason"]


def test_the_data_do_not_decide_between_a_better_and_a_cheaper_one() -> None:
    given = [candidate("大", 0.9, p50=20), candidate("小", 0.89, p50=1)]
    found = recommend(given, [pair("大", "小", p=0.2)], metric="accuracy", margin=0.5)
    assert found["candidate"] is None
    assert "数据不足以决定" in found["reason"]
    assert "1.5 倍" in found["reason"]  # (1.2 / 1.0)², of the samples that there are


@pytest.mark.parametrize("p50", [20, 30])
def test_the_best_is_taken_where_what_may_be_as_good_is_no_cheaper(p50: float) -> None:
    given = [candidate("好", 0.9, p50=20), candidate("贵", 0.89, p50=p50)]
    found = recommend(given, [pair("好", "贵", p=0.2)], metric="accuracy", margin=0.5)
    assert found["candidate"] == "好"
