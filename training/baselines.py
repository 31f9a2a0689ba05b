"""The linear baseline: TF-IDF of character n-grams under a support vector machine, its C chosen on dev."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from model.architectures.linear import LinearClassifier
from model.console import say, track
from model.errors import BadSnapshot
from model.metrics import evaluate
from model.run import Run, start_run
from model.runtime.decode import Decoder
from model.snapshot import Snapshot
from model.tokenization.ngrams import NgramTokenizer, joined
from model.types import Split, Text
from training.data import Dataset, read
from training.evaluate import conclude, load_splits
from training.loop import predict

STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0)  # of C; Chinese titles and reviews have had their best at 0.1 to 1


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
        BadSnapshot: the train split has one class only, or train or dev is empty.
        BadRun: `out` holds another run.
    """
    config = {**asdict(options), "max_length": 0, "normaliser": snapshot.normaliser.to_json()}
    run = start_run(
        out,
        arch="linear",
        config=config,
        seed=seed,
        snapshot=snapshot.hash,
        snapshot_path=snapshot.path,
        taxonomy=snapshot.taxonomy,
    )
    started = time.monotonic()
    tokenizer = fit_tokenizer(snapshot, options)
    train_set, dev_set, test_set = load_splits(snapshot, tokenizer, limit=options.limit)
    if len(np.unique(train_set.gold, axis=0)) < 2:
        raise BadSnapshot(f"snapshot {snapshot.hash} has one class only in its train split; import others too")
    features = feature_matrix(train_set, len(tokenizer.vocabulary))
    scored = []
    for strength in track(STRENGTHS, "线性基线 linear", len(STRENGTHS)):
        classifier = fit(features, train_set, strength, seed)
        scores = Decoder(run.taxonomy).scores(predict(classifier, dev_set))
        scored.append((evaluate(scores, dev_set.gold, run.taxonomy, resamples=1)["macro_f1"], strength, classifier))
    _, strength, classifier = max(scored, key=lambda candidate: candidate[0])
    say(f"C {strength} is best on dev; {len(tokenizer.vocabulary):,} n-grams")
    run.model_path.mkdir(exist_ok=True)
    classifier.save(run.model_path)
    tokenizer.save(run.model_path)
    cost = {"seconds": round(time.monotonic() - started, 1), "C": strength, "train_samples": len(train_set)}
    return conclude(run, classifier, dev_set=dev_set, test_set=test_set, cost=cost)


def fit_tokenizer(snapshot: Snapshot, options: LinearOptions) -> NgramTokenizer:
    """The n-grams of the train split and their inverse document frequencies."""
    texts = [joined(Text(sample.text, sample.pair)) for sample in read(snapshot, Split.TRAIN, limit=options.limit)]
    vectorizer = TfidfVectorizer(
        analyzer="char",
        ngram_range=(options.smallest, options.largest),
        min_df=min(options.min_texts, len(texts)),
        max_features=options.most,
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
    machine = OneVsRestClassifier(LinearSVC(C=strength, random_state=seed))
    machine.fit(features, dataset.gold.astype(int))
    weight = np.zeros((features.shape[1], dataset.gold.shape[1]), np.float32)
    bias = np.full(dataset.gold.shape[1], -1.0, np.float32)  # a label that train never has is never chosen
    for label, estimator in enumerate(machine.estimators_):
        if hasattr(estimator, "coef_"):
            weight[:, label], bias[label] = estimator.coef_[0], estimator.intercept_[0]
        elif dataset.gold[:, label].all():
            bias[label] = 1.0
    return LinearClassifier(torch.from_numpy(weight), torch.from_numpy(bias))
