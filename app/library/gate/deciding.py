"""Decide which predictions of the pool are accepted: by one threshold, or by one for each predicted set of labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.library.gate.predicting import Predicted
from model.metrics import BoolArray
from model.selective import Bound, Chosen, choose_threshold, fewest_samples, supported_error


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
    """rules: as they were found, those of several sets by how much they accept. accepted: (m,), of the pool."""

    rules: tuple[Rule, ...]
    accepted: BoolArray


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
        rule = _rule(None, calibration.able, pool.able, calibration, wrong, pool, bound, accepted, new)
        return Decision((rule,), accepted[:new])
    groups = []
    for labels in sorted({sets[number] for number in np.unique(pool.sets[pool.able]).tolist()}):
        numbers = [number for number, each in enumerate(sets) if each == labels]
        groups.append((labels, *(each.able & np.isin(each.sets, numbers) for each in (calibration, pool))))
    able = sum(int(given.sum()) >= fewest_samples(bound) for _, given, _ in groups)
    shared = bound.shared_by(max(1, able))
    rules = [
        _rule(labels, given, asked, calibration, wrong, pool, shared, accepted, new) for labels, given, asked in groups
    ]
    return Decision(tuple(sorted(rules, key=lambda rule: (-rule.accepted, -rule.pool))), accepted[:new])


def _rule(
    labels: tuple[str, ...] | None,
    given: BoolArray,
    asked: BoolArray,
    calibration: Predicted,
    wrong: BoolArray,
    pool: Predicted,
    bound: Bound,
    accepted: BoolArray,
    new: int,
) -> Rule:
    """The rule for the predictions `given` and `asked`; what it accepts is marked in `accepted`."""
    data = calibration.sure[given], wrong[given], pool.sure[asked]
    chosen = choose_threshold(*data, bound)
    if chosen.best is None:
        return Rule(labels, chosen, int(asked[:new].sum()), 0, supported_error(*data, bound))
    passing = asked & (pool.sure >= chosen.best.threshold)
    accepted |= passing
    return Rule(labels, chosen, int(asked[:new].sum()), int(passing[:new].sum()), None)
