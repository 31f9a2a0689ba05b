"""The linear baseline: TF-IDF of character n-grams under a support vector machine, its C chosen on dev."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from model.architectures.linear import LinearClassifier
from model.console import say, track
from model.errors import BadSnapshot
from model.metrics import evaluate
from model.run import Run, start_run
from model.runtime.decode import Decoder
from model.snapshot import Snapshot
from model.tokenization.ngrams import NgramTokenizer, joined
from model.types import Split, Taxonomy, Text
from training.data import Dataset, read
from training.evaluate import conclude, load_splits
from training.loop import predict

STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0)  # of C; Chinese titles and reviews have had their best at 0.1 to 1
MOST_WEIGHTS = 200_000_000  # n-grams times labels: 800 MB, and an ONNX file holds less than 2 GB


@dataclass(frozen=True, slots=True)
class LinearOptions:
    """n-grams of `smallest` to `largest` characters that at least `min_texts` texts have, the `most` commonest."""

    smallest: int = 1
    largest: int = 3
    min_texts: int = 2
    most: int = 300_000
    limit: int | None = None


def train_linear(snapshot: Snapshot, *, options: LinearOptions, seed: int, out: Path) -> Run:
    """Fit, choose, calibrate and evaluate; the run is in `out`.

    Raises:
        BadSnapshot: all of train has the same labels, or train or dev is empty.
        BadRun: `out` holds another run.
    """
    started = time.monotonic()
    tokenizer = fit_tokenizer(snapshot, options)
    train_set, dev_set, test_set = load_splits(snapshot, tokenizer, limit=options.limit)
    features = feature_matrix(train_set, len(tokenizer.vocabulary))
    run = start_run(
        out,
        arch="linear",
        config={**asdict(options), "max_length": 0, "normaliser": snapshot.normaliser.to_json()},
        seed=seed,
        snapshot=snapshot.hash,
        snapshot_path=snapshot.path,
        taxonomy=snapshot.taxonomy,
    )
    best = -1.0
    for candidate in track(STRENGTHS, "线性基线 linear", len(STRENGTHS)):
        fitted = fit(features, train_set, candidate, seed)
        score = dev_score(fitted, dev_set, snapshot.taxonomy)
        if score > best:
            best, strength, classifier = score, candidate, fitted
    say(f"C {strength} is best on dev; {len(tokenizer.vocabulary):,} n-grams")
    run.model_path.mkdir(exist_ok=True)
    classifier.save(run.model_path)
    tokenizer.save(run.model_path)
    cost = {"seconds": round(time.monotonic() - started, 1), "C": strength, "train_samples": len(train_set)}
    return conclude(run, classifier, dev_set=dev_set, test_set=test_set, cost=cost)


def dev_score(classifier: LinearClassifier, dev_set: Dataset, taxonomy: Taxonomy) -> float:
    """Macro-F1 on dev."""
    scores = Decoder(taxonomy).scores(predict(classifier, dev_set))
    return float(evaluate(scores, dev_set.gold, taxonomy, resamples=1)["macro_f1"])


def fit_tokenizer(snapshot: Snapshot, options: LinearOptions) -> NgramTokenizer:
    """The n-grams of the train split and their inverse document frequencies."""
    texts = [joined(Text(sample.text, sample.pair)) for sample in read(snapshot, Split.TRAIN, limit=options.limit)]
    vectorizer = TfidfVectorizer(
        analyzer="char",
        ngram_range=(options.smallest, options.largest),
        min_df=min(options.min_texts, len(texts)),
        max_features=min(options.most, MOST_WEIGHTS // len(snapshot.taxonomy)),
        sublinear_tf=True,
    )
    try:
        vectorizer.fit(texts)
    except ValueError as error:
        raise BadSnapshot(f"the train split of snapshot {snapshot.hash} is too small for n-grams: {error}") from None
    return NgramTokenizer(
        vocabulary={ngram: int(number) for ngram, number in vectorizer.vocabulary_.items()},
        idf=np.round(vectorizer.idf_, 6).astype(np.float32),  # as many digits as `save` writes
        smallest=options.smallest,
        largest=options.largest,
    )


def feature_matrix(dataset: Dataset, n_ngrams: int) -> csr_matrix:
    """The n-gram weights of every sample: sparse (n_samples, n_ngrams)."""
    ids = np.concatenate([encoded.inputs["ngram_ids"] for encoded in dataset.encoded])
    weights = np.concatenate([encoded.inputs["ngram_weights"] for encoded in dataset.encoded])
    starts = np.concatenate([[0], np.cumsum(dataset.lengths)])
    return csr_matrix((weights, ids, starts), shape=(len(dataset), n_ngrams))


def fit(features: csr_matrix, dataset: Dataset, strength: float, seed: int) -> LinearClassifier:
    """One-against-rest support vector machines (Fan 2008): a column of weights a label."""
    weight = np.zeros((features.shape[1], dataset.gold.shape[1]), np.float32)
    bias = np.where(dataset.gold.all(axis=0), 1, -1).astype(np.float32)  # of labels that all texts have, or none
    undecided = np.flatnonzero(dataset.gold.any(axis=0) & ~dataset.gold.all(axis=0))
    for label in undecided:
        machine = LinearSVC(C=strength, random_state=seed).fit(features, dataset.gold[:, label])
        weight[:, label], bias[label] = machine.coef_[0], machine.intercept_[0]
    return LinearClassifier(torch.from_numpy(weight), torch.from_numpy(bias))
