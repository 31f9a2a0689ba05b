"""The linear baseline: TF-IDF of character n-grams under a support vector machine, its C chosen on dev."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from model.architectures.linear import LinearClassifier
from model.console import say, track
from model.errors import BadSnapshot
from model.metrics import evaluate
from model.run import Run
from model.runtime.decode import Decoder
from model.snapshot import Snapshot
from model.tokenization.ngrams import NgramTokenizer, joined
from model.types import Sample, Split, Taxonomy, Text
from training.data import Dataset, encode
from training.loop import predict
from training.recipe import Prepared, Trained, train

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


@dataclass(frozen=True, slots=True)
class LinearRecipe:
    """How the baseline is trained for `taxonomy`. strength: C; None: that of `STRENGTHS` that is best on dev."""

    taxonomy: Taxonomy
    options: LinearOptions
    seed: int
    strength: float | None = None
    arch: ClassVar[str] = "linear"

    @property
    def config(self) -> dict[str, Any]:
        return {**asdict(self.options), "max_length": 0}

    @property
    def limit(self) -> int | None:
        return self.options.limit

    def prepare(self, splits: Mapping[Split, Sequence[Sample]]) -> Prepared:
        """Encode the splits by the n-grams of train alone.

        Raises:
            BadSnapshot: train has no n-grams.
        """
        tokenizer = fit_tokenizer(splits[Split.TRAIN], self.options, n_labels=len(self.taxonomy))
        datasets = {split: encode(samples, tokenizer, self.taxonomy) for split, samples in splits.items()}

        def learn(_: Path) -> Trained:  # it is over before a checkpoint would be worth it
            features = feature_matrix(datasets[Split.TRAIN], len(tokenizer.vocabulary))
            classifier, strength = self._fit(features, datasets)

            def save(folder: Path) -> None:
                classifier.save(folder)
                tokenizer.save(folder)

            return Trained(classifier=classifier, cost={"C": strength}, save=save)

        return Prepared(tokenizer=tokenizer, datasets=datasets, train=learn)

    def settled(self, cost: Mapping[str, Any]) -> "LinearRecipe":
        """The recipe with the C that was found best."""
        return replace(self, strength=cost["C"])

    def _fit(self, features: csr_matrix, datasets: Mapping[Split, Dataset]) -> tuple[LinearClassifier, float]:
        """The fitted classifier and its C."""
        train_set, dev_set = datasets[Split.TRAIN], datasets[Split.DEV]
        if self.strength is not None:
            return fit(features, train_set, self.strength, self.seed), self.strength
        best = -1.0
        for candidate in track(STRENGTHS, "线性基线 linear", len(STRENGTHS)):
            fitted = fit(features, train_set, candidate, self.seed)
            score = dev_score(fitted, dev_set, self.taxonomy)
            if score > best:
                best, strength, classifier = score, candidate, fitted
        n_grams = features.shape[1]
        say(f"开发集上 C {strength} 最好，{n_grams:,} 个 n 元组 | C {strength} is best on dev; {n_grams:,} n-grams")
        return classifier, strength


def train_linear(snapshot: Snapshot, *, options: LinearOptions, seed: int, out: Path) -> Run:
    """Fit, choose, calibrate and evaluate; the run is in `out`.

    Raises:
        BadSnapshot: all of train has the same labels, or train or dev is empty.
        BadRun: `out` holds another run.
    """
    return train(snapshot, LinearRecipe(taxonomy=snapshot.taxonomy, options=options, seed=seed), out=out)


def dev_score(classifier: LinearClassifier, dev_set: Dataset, taxonomy: Taxonomy) -> float:
    """Macro-F1 on dev."""
    scores = Decoder(taxonomy).scores(predict(classifier, dev_set))
    return float(evaluate(scores, dev_set.gold, taxonomy, resamples=1)["macro_f1"])


def fit_tokenizer(samples: Sequence[Sample], options: LinearOptions, *, n_labels: int) -> NgramTokenizer:
    """The n-grams of `samples` and their inverse document frequencies.

    Raises:
        BadSnapshot: there are none.
    """
    texts = [joined(Text(sample.text, sample.pair)) for sample in samples]
    vectorizer = TfidfVectorizer(
        analyzer="char",
        ngram_range=(options.smallest, options.largest),
        min_df=min(options.min_texts, len(texts)),
        max_features=min(options.most, MOST_WEIGHTS // n_labels),
        sublinear_tf=True,
    )
    try:
        vectorizer.fit(texts)
    except ValueError as error:
        raise BadSnapshot(f"{len(texts)} train samples are too few for n-grams: {error}; import more") from None
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
