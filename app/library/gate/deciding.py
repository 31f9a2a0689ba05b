"""Decide which predictions of the pool are accepted: by one threshold, or by one for each predicted set of labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.library.gate.predicting import Predicted
from model.metrics import BoolArray
from model.selective import Bound, Chosen, choose_threshold, fewest_samples, supported_error
from model.types import IntArray


@dataclass(frozen=True, slots=True)
class Rule:
    """A threshold for the predictions of one set of labels, or of all (labels None).

    pool, accepted: predictions that it is for, and how many of them it accepts; those of before are not counted.
    supported: where it accepts nothing, a larger error with which the data would support something, if there is one.
    """

    labels: tuple[str, ...] | None
    chosen: Chosen
    pool: int
    accepted: int
    supported: float | None


@dataclass(frozen=True, slots=True)
class Decision:
    """rules: as they were found, those of several sets by how much they accept. accepted: (m,), of the pool.

    again: (b,), which of those that the gate accepted before these rules accept, too. The bound speaks of no others: an
    earlier run may have had a looser bound, or classes that these rules leave out.
    """

    rules: tuple[Rule, ...]
    accepted: BoolArray
    again: BoolArray

    @property
    def earlier(self) -> int:
        """How many of those of before are accepted again."""
        return int(self.again.sum())


def decide(
    calibration: Predicted,
    wrong: BoolArray,
    pool: Predicted,
    bound: Bound,
    *,
    sets: Sequence[tuple[str, ...]],
    per_class: bool,
    new: int,
) -> Decision:
    """Find the thresholds by the calibration samples and apply them to the first `new` of the pool.

    The others are what the gate has accepted before: what it left is not like the calibration samples, but both are,
    together, and for both together the bound is made to hold.

    wrong: (n,), whether the prediction of each calibration sample is. sets: the labels of each number in `sets` of the
    predictions. Per class, the bound holds for all classes at once: those with enough calibration samples to stand a
    chance share the delta, and how many those are follows from predictions alone, never from errors.
    """
    accepted = np.zeros(len(pool.ids), bool)
    if not per_class:
        given, asked = np.flatnonzero(calibration.able), np.flatnonzero(pool.able)
        rule = _rule(None, given, asked, calibration, wrong, pool, bound, accepted, new)
        return Decision((rule,), accepted[:new], accepted[new:])
    of_calibration, of_pool = (_positions(each, sets) for each in (calibration, pool))
    none = np.empty(0, np.int64)
    groups = [(labels, of_calibration.get(labels, none), asked) for labels, asked in sorted(of_pool.items())]
    able = sum(len(given) >= fewest_samples(bound) for _, given, _ in groups)
    shared = bound.shared_by(max(1, able))
    rules = [
        _rule(labels, given, asked, calibration, wrong, pool, shared, accepted, new) for labels, given, asked in groups
    ]
    ordered = tuple(sorted(rules, key=lambda rule: (-rule.accepted, -rule.pool)))
    return Decision(ordered, accepted[:new], accepted[new:])


def _positions(predicted: Predicted, sets: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], IntArray]:
    """The positions of the predictions of each set of labels, of those that could be accepted."""
    distinct = {labels: number for number, labels in enumerate(dict.fromkeys(sets))}  # several numbers may mean one set
    groups = np.array([distinct[labels] for labels in sets], np.int64)[predicted.sets]
    positions = np.flatnonzero(predicted.able)
    positions = positions[np.argsort(groups[positions], kind="stable")]
    names, starts = np.unique(groups[positions], return_index=True)
    parts = np.split(positions, starts[1:])
    labels = list(distinct)
    return {labels[name]: part for name, part in zip(names.tolist(), parts, strict=False)}


def _rule(
    labels: tuple[str, ...] | None,
    given: IntArray,
    asked: IntArray,
    calibration: Predicted,
    wrong: BoolArray,
    pool: Predicted,
    bound: Bound,
    accepted: BoolArray,
    new: int,
) -> Rule:
    """The rule for the predictions at the positions `given` and `asked`; what it accepts is marked in `accepted`."""
    data = calibration.sure[given], wrong[given], pool.sure[asked]
    chosen = choose_threshold(*data, bound)
    fresh = int((asked < new).sum())
    if chosen.best is None:
        return Rule(labels, chosen, fresh, 0, supported_error(*data, bound))
    passing = asked[pool.sure[asked] >= chosen.best.threshold]
    accepted[passing] = True
    return Rule(labels, chosen, fresh, int((passing < new).sum()), None)
