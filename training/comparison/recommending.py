"""Which candidate to take, in a sentence; or that the data do not decide."""

from collections.abc import Sequence
from math import ceil

from model.comparison import NAMES, CandidateShape, PairShape, RecommendationShape

SIGNIFICANT = 0.05


def recommend(
    candidates: Sequence[CandidateShape], pairs: Sequence[PairShape], *, metric: str, margin: float
) -> RecommendationShape:
    """The cheapest candidate that is not worse than the best; else the best, if that is sure.

    candidates: the best by `metric` first. Cheaper is faster where speed was measured, else smaller. margin: in points.
    """
    best, *others = candidates
    against = {pair["other"]: pair for pair in pairs if pair["one"] == best["name"]}
    as_good = [other for other in others if against[other["name"]]["equivalence"]["not_worse"]]
    cheapest = min([best, *as_good], key=_cost)
    if cheapest is not best:
        return _cheaper(cheapest, best, metric, margin)
    unsure = [other for other in others if against[other["name"]]["differences"][metric]["p_holm"] >= SIGNIFICANT]
    if not unsure:
        return _clearly(best, against, others, metric)
    if rivals := [other for other in unsure if _cost(other) < _cost(best)]:
        rival = min(rivals, key=_cost)
        return _undecided(best, rival, against[rival["name"]], metric, margin)
    return {
        "candidate": best["name"],
        "reason": f"建议 {best['name']}：{NAMES[metric][0]} {_shown(best, metric)}，最高，也最省；"
        f"{_list(unsure)} 与它的差距可能只是偶然，但并不更省。",
        "reason_en": f"Take {best['name']}: the highest {NAMES[metric][1]}, {_shown(best, metric)}, and the cheapest; "
        f"{_list(unsure)} may differ by chance alone, but cost no less.",
    }


def _cheaper(cheapest: CandidateShape, best: CandidateShape, metric: str, margin: float) -> RecommendationShape:
    times, what, what_en = _saving(cheapest, best)
    return {
        "candidate": cheapest["name"],
        "reason": f"建议 {cheapest['name']}：{NAMES[metric][0]} {_shown(cheapest, metric)}，不比最好的 {best['name']}"
        f"（{_shown(best, metric)}）差 {margin:g} 分以上，而{what} {times:.1f} 倍。",
        "reason_en": f"Take {cheapest['name']}: its {NAMES[metric][1]}, {_shown(cheapest, metric)}, is not worse than "
        f"the best, {best['name']} ({_shown(best, metric)}), by {margin:g} points, and it is {times:.1f} times "
        f"{what_en}.",
    }


def _clearly(
    best: CandidateShape, against: dict[str, PairShape], others: Sequence[CandidateShape], metric: str
) -> RecommendationShape:
    second = others[0]["name"]
    difference = against[second]["differences"][metric]
    apart = f"{100 * difference['value']:.2f} ({100 * difference['low']:.2f}–{100 * difference['high']:.2f})"
    p = f"{difference['p_holm']:.2g}"
    return {
        "candidate": best["name"],
        "reason": f"建议 {best['name']}：{NAMES[metric][0]} {_shown(best, metric)}，比其余各个都好且不是偶然；"
        f"领先第二名 {second} {apart} 分，校正后 p = {p}。",
        "reason_en": f"Take {best['name']}: its {NAMES[metric][1]}, {_shown(best, metric)}, is better than every "
        f"other's by more than chance; {apart} points ahead of {second}, p = {p} after Holm.",
    }


def _undecided(
    best: CandidateShape, rival: CandidateShape, pair: PairShape, metric: str, margin: float
) -> RecommendationShape:
    difference = pair["differences"][metric]
    half_width = (difference["high"] - difference["low"]) / 2
    goal = max(abs(difference["value"]), margin / 100)
    times = ceil(10 * (half_width / goal) ** 2) / 10  # an interval shrinks by the root of the number of texts
    apart = f"{100 * difference['value']:.2f} ({100 * difference['low']:.2f} – {100 * difference['high']:.2f})"
    return {
        "candidate": None,
        "reason": f"数据不足以决定：{best['name']} 比 {rival['name']} 高 {apart} 分，可能只是偶然，而 {rival['name']} "
        f"更省；约需 {max(times, 1.1):.1f} 倍的样本才能分清。",
        "reason_en": f"The data do not decide: {best['name']} is {apart} points ahead of {rival['name']}, which may be "
        f"chance, and {rival['name']} is cheaper; about {max(times, 1.1):.1f} times the samples would tell.",
    }


def _cost(candidate: CandidateShape) -> tuple[float, float]:
    return min((each["p50_ms"] for each in candidate["speed"].values()), default=0.0), candidate["size_mib"]


def _saving(cheapest: CandidateShape, best: CandidateShape) -> tuple[float, str, str]:
    (fast, small), (slow, large) = _cost(cheapest), _cost(best)
    return (slow / fast, "快", "faster") if fast else (large / small, "小", "smaller")


def _shown(candidate: CandidateShape, metric: str) -> str:
    return f"{100 * candidate['figures'][metric]['value']:.2f}"


def _list(candidates: Sequence[CandidateShape]) -> str:
    return "、".join(candidate["name"] for candidate in candidates)
