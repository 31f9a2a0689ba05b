"""The only metrics and statistics: figures with confidence intervals, calibration, agreement. Numpy and nothing else.

Every figure that is shown, compared or gated on comes from `evaluate`. Matrices are (n, n_labels), their columns
in the order of the taxonomy; `gold` and `predicted` are boolean, so that one form serves all three tasks.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.errors import BadInput
from model.types import Activation, FloatArray, IntArray, Taxonomy

BoolArray = NDArray[np.bool_]
CountArray = NDArray[np.floating[Any]]

DEFAULT_THRESHOLD = 0.5  # of a sigmoid score, for labels that no threshold was fitted for
ECE_BINS = 15  # Guo et al. 2017, https://arxiv.org/abs/1706.04599
TEMPERATURES = (0.05, 20.0)  # beyond these the scores of any usual network are all 1 or all alike
VALUES_AT_ONCE = 500  # rows of a matrix of distances between sets of labels: 40 MB where there are 10,000 sets
DRAWS_AT_ONCE = 1_000_000  # pattern counts a bootstrap step holds: 8 MB


def activate(logits: FloatArray, activation: Activation) -> FloatArray:
    """Scores of `logits`: softmax over the last axis, or a sigmoid each; the same shape, never an overflow."""
    if activation is Activation.SOFTMAX:
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        scores: NDArray[Any] = powers / powers.sum(axis=-1, keepdims=True)
    else:
        powers = np.exp(-np.abs(logits))
        scores = np.where(logits >= 0, 1, powers) / (1 + powers)
    return scores.astype(np.float32, copy=False)


def gold_matrix(labels: Sequence[Sequence[str]], taxonomy: Taxonomy) -> BoolArray:
    """The labels of n texts as (n, n_labels).

    Raises:
        UnknownLabel: one of them is not in the taxonomy.
    """
    gold = np.zeros((len(labels), len(taxonomy)), dtype=bool)
    rows = np.repeat(np.arange(len(labels)), np.fromiter(map(len, labels), dtype=np.int64))
    gold[rows, taxonomy.indices(chain.from_iterable(labels))] = True
    return gold


def predicted_matrix(scores: FloatArray, taxonomy: Taxonomy, thresholds: Mapping[str, float] | None) -> BoolArray:
    """What `scores` (n, n_labels) choose: the best label of each row, or, where a text may carry several,
    all that reach their thresholds, which may be none."""
    if taxonomy.multiple:
        fitted = thresholds or {}
        return scores >= np.array([fitted.get(label, DEFAULT_THRESHOLD) for label in taxonomy.labels])
    predicted = np.zeros(scores.shape, dtype=bool)
    predicted[np.arange(len(scores)), scores.argmax(axis=1)] = True
    return predicted


def evaluate(
    scores: FloatArray,
    gold: BoolArray,
    taxonomy: Taxonomy,
    *,
    thresholds: Mapping[str, float] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> dict[str, Any]:
    """All figures of `scores` (n, n_labels) against `gold`, ready for JSON.

    accuracy: texts whose set of labels is exactly right. macro_f1: the mean over labels that occur in gold or in
    the predictions, 0 where precision or recall is undefined; scikit-learn's convention for single choice.
    `*_ci`: [low, high] of the percentile bootstrap over texts. per_label: precision, recall, f1, support.
    ece: expected calibration error of the best label, or of every label where a text may carry several.
    per_level: hierarchical tasks only; accuracy of the paths cut to their first 1, 2, … levels.

    Raises:
        BadInput: there are no texts to evaluate on.
    """
    if not len(gold):
        raise BadInput("there are no samples to evaluate on; choose a split that has some")
    predicted = predicted_matrix(scores, taxonomy, thresholds)
    exact = (predicted == gold).all(axis=1)
    hits, chosen, support = (matrix.sum(axis=0, dtype=float) for matrix in (predicted & gold, predicted, gold))
    accuracy_ci, macro_f1_ci = _bootstrap(gold, predicted, resamples=resamples, seed=seed, confidence=confidence)
    columns = (_ratio(hits, chosen), _ratio(hits, support), _f1(hits, chosen, support), support.astype(int))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    figures = {
        "n": len(gold),
        "accuracy": float(exact.mean()),
        "accuracy_ci": accuracy_ci,
        "macro_f1": float(macro_f1(hits, chosen, support)),
        "macro_f1_ci": macro_f1_ci,
        "micro_f1": float(micro_f1(hits, chosen, support)),
        "ece": _calibration_error(scores, gold, exact, taxonomy),
        "per_label": {
            label: dict(zip(("precision", "recall", "f1", "support"), row, strict=True))
            for label, row in zip(taxonomy.labels, rows, strict=True)
        },
    }
    if taxonomy.level_sep is not None:
        figures["per_level"] = _per_level_accuracy(predicted, gold, taxonomy)
    return figures


def macro_f1(hits: CountArray, chosen: CountArray, support: CountArray) -> CountArray:
    """The mean F1 over the last axis, of labels that occur; counts of texts: (…, n_labels) → (…)."""
    occurring = (chosen + support > 0).sum(axis=-1)
    return _ratio(_f1(hits, chosen, support).sum(axis=-1), occurring)


def micro_f1(hits: CountArray, chosen: CountArray, support: CountArray) -> CountArray:
    """The F1 of all labels over the last axis together; counts of texts: (…, n_labels) → (…)."""
    return _f1(hits.sum(axis=-1), chosen.sum(axis=-1), support.sum(axis=-1))


def sureness(scores: FloatArray, gold: BoolArray, exact: BoolArray, taxonomy: Taxonomy) -> tuple[FloatArray, BoolArray]:
    """What calibration is about: how sure the model was, and whether it was right, each (n_decisions,).

    A decision is the best label of a text, or, where it may carry several, each label of each text.
    """
    return (scores.ravel(), gold.ravel()) if taxonomy.multiple else (scores.max(axis=1), exact)


def fit_temperature(logits: FloatArray, gold: BoolArray, activation: Activation) -> float:
    """The temperature that makes `gold` likeliest under `activate(logits / temperature)`; 1.0 without rows.

    The likelihood has one peak in the temperature, so golden sections find it. A prior worth about one row pulls
    towards 1: a handful of texts that are all right must not make the model certain of everything.
    """
    if not len(logits):
        return 1.0
    wide = logits.astype(np.float64)

    def loss(log_temperature: float) -> float:
        scaled = wide / np.exp(log_temperature)
        if activation is Activation.SOFTMAX:
            highest = scaled.max(axis=1, keepdims=True)
            likelihood = (scaled - highest - np.log(np.exp(scaled - highest).sum(axis=1, keepdims=True)))[gold].sum()
        else:
            likelihood = -np.logaddexp(0, np.where(gold, -scaled, scaled)).sum()
        return float(log_temperature**2 - likelihood)

    low, high = np.log(TEMPERATURES)
    return float(np.exp(golden_section(loss, low, high)))


def fit_thresholds(scores: FloatArray, gold: BoolArray, labels: Sequence[str]) -> dict[str, float]:
    """Per label the threshold with the best F1 on `scores` (n, n_labels), the highest of several; labels that
    `gold` never has keep the default.

    A threshold lies half way between the last score that it accepts and the first that it does not.
    """
    positives = gold.sum(axis=0)
    if not positives.any():
        return dict.fromkeys(labels, DEFAULT_THRESHOLD)
    order = np.argsort(-scores, axis=0, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=0).astype(np.float64)
    following = np.vstack([ranked[1:], np.zeros((1, len(labels)))])
    hits = np.take_along_axis(gold, order, axis=0).cumsum(axis=0)
    f1 = _f1(hits, np.arange(1, len(scores) + 1)[:, None], positives)
    f1[:-1][ranked[:-1] == ranked[1:]] = -1  # equal scores are accepted together or not at all
    best = f1.argmax(axis=0), np.arange(len(labels))
    fitted = np.where(positives > 0, (ranked[best] + following[best]) / 2, DEFAULT_THRESHOLD)
    return dict(zip(labels, fitted.tolist(), strict=True))


def cohen_kappa(one: IntArray, other: IntArray) -> float | None:
    """How much more often two annotators agree than chance would have them, 1 at best; Cohen 1960.

    one, other: (n,), the value that each gave to text i. None where chance alone would always agree.
    """
    values = int(max(one.max(), other.max())) + 1
    shares = [np.bincount(given, minlength=values) / len(given) for given in (one, other)]
    chance = float(shares[0] @ shares[1])
    return (float((one == other).mean()) - chance) / (1 - chance) if chance < 1 else None


def krippendorff_alpha(units: Sequence[Sequence[int]], values: BoolArray) -> float | None:
    """The agreement of any number of annotators, each on any of the texts: 1 at best, 0 by chance.

    units: per text the values that its annotators gave; texts with fewer than two do not count. values: (n_values,
    n_labels), the set of labels that each value is. Sets are as far apart as MASI has it (Passonneau 2006), so that
    single labels are nominal. None where only one value was given. Krippendorff 2011, "Computing Krippendorff's
    Alpha-Reliability".
    """
    coincidences: defaultdict[tuple[int, int], float] = defaultdict(float)
    for unit in units:
        for pair in permutations(unit, 2):
            coincidences[pair] += 1 / (len(unit) - 1)
    pairs = np.array(list(coincidences), dtype=np.int64).reshape(-1, 2)
    weights = np.fromiter(coincidences.values(), dtype=np.float64)
    given = np.bincount(pairs[:, 0], weights=weights, minlength=len(values))
    sizes = values.sum(axis=1)
    one, other = pairs.T
    observed = weights @ _masi_distance((values[one] & values[other]).sum(axis=1), sizes[one], sizes[other])
    expected, matrix = 0.0, values.astype(np.float32)
    for start in range(0, len(values), VALUES_AT_ONCE):
        block = slice(start, start + VALUES_AT_ONCE)
        distances = _masi_distance(matrix[block] @ matrix.T, sizes[block, None], sizes)
        expected += float(given[block] @ distances @ given)
    return float(1 - (given.sum() - 1) * observed / expected) if expected else None


def _masi_distance(shared: Any, one: Any, other: Any) -> CountArray:
    """How far two sets of the sizes `one` and `other` are apart that have `shared` labels in common, 0 to 1.

    Two empty sets are the same; an empty one is as far from any other as can be.
    """
    union = one + other - shared
    jaccard = np.where(union == 0, 1, shared / np.maximum(union, 1))
    smaller, larger = np.minimum(one, other), np.maximum(one, other)
    monotonicity = np.where(shared == larger, 1, np.where(shared == smaller, 2 / 3, 1 / 3))
    return np.asarray(1 - jaccard * monotonicity)


def _bootstrap(
    gold: BoolArray, predicted: BoolArray, *, resamples: int, seed: int, confidence: float
) -> tuple[list[float], list[float]]:
    """Percentile intervals of accuracy and macro-F1.

    Texts with the same gold and predicted labels are interchangeable, so a resample is a multinomial draw of how
    often each such pattern comes, and its figures are matrix products.
    """
    patterns, counts = _patterns(np.hstack([gold, predicted]))
    gold, predicted = np.hsplit(patterns, 2)
    exact = (gold == predicted).all(axis=1).astype(np.float64)
    hit_rows, chosen_rows, support_rows = (matrix.astype(np.float64) for matrix in (gold & predicted, predicted, gold))
    texts, generator = int(counts.sum()), np.random.default_rng(seed)
    at_once = max(1, DRAWS_AT_ONCE // len(counts))
    accuracies, macro_f1s = [], []
    for start in range(0, resamples, at_once):
        size = min(at_once, resamples - start)
        drawn = generator.multinomial(texts, counts / texts, size=size).astype(np.float64)
        accuracies.append(drawn @ exact / texts)
        macro_f1s.append(macro_f1(drawn @ hit_rows, drawn @ chosen_rows, drawn @ support_rows))
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    accuracy_ci, macro_f1_ci = (np.quantile(np.concatenate(drawn), tails) for drawn in (accuracies, macro_f1s))
    return accuracy_ci.tolist(), macro_f1_ci.tolist()


def _patterns(rows: BoolArray) -> tuple[BoolArray, NDArray[np.int64]]:
    """The distinct rows, and how often each comes."""
    packed = np.ascontiguousarray(np.packbits(rows, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return rows[first], counts


def _calibration_error(scores: FloatArray, gold: BoolArray, exact: BoolArray, taxonomy: Taxonomy) -> float:
    sure, right = sureness(scores, gold, exact, taxonomy)
    bins = np.minimum((sure * ECE_BINS).astype(int), ECE_BINS - 1)
    gaps = np.bincount(bins, weights=sure) - np.bincount(bins, weights=right)
    return float(np.abs(gaps).sum() / len(sure))


def _per_level_accuracy(predicted: BoolArray, gold: BoolArray, taxonomy: Taxonomy) -> dict[str, float]:
    paths = [taxonomy.levels(label) for label in taxonomy.labels]
    accuracies = {}
    for level in range(1, max(map(len, paths)) + 1):
        heads = sorted({path[:level] for path in paths})
        member = np.array([[path[:level] == head for head in heads] for path in paths], dtype=np.float32)
        same = (predicted @ member > 0) == (gold @ member > 0)
        accuracies[str(level)] = float(same.all(axis=1).mean())
    return accuracies


def _ratio(part: Any, whole: Any) -> CountArray:
    """`part / whole`, 0 where there is nothing to divide by; both of one shape."""
    return np.asarray(np.divide(part, np.maximum(whole, 1)))


def _f1(hits: Any, chosen: Any, support: Any) -> CountArray:
    return _ratio(2.0 * hits, chosen + support)


def golden_section(loss: Callable[[float], float], low: float, high: float, *, tolerance: float = 1e-4) -> float:
    """Where `loss`, which has one valley between `low` and `high`, is least."""
    golden = (np.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    left_loss, right_loss = loss(left), loss(right)
    while high - low > tolerance:
        if left_loss <= right_loss:
            high, right, right_loss = right, left, left_loss
            left = high - golden * (high - low)
            left_loss = loss(left)
        else:
            low, left, left_loss = left, right, right_loss
            right = low + golden * (high - low)
            right_loss = loss(right)
    return float((low + high) / 2)
