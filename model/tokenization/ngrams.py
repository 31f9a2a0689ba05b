"""Character n-grams with TF-IDF weights: the features of the linear baseline, as scikit-learn's `TfidfVectorizer`
(analyzer `char`, sublinear) computes them, without scikit-learn."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import ClassVar

import numpy as np

from model.files import read_json, write_json
from model.tokenization.base import Encoded
from model.types import FloatArray, Text

TYPE = "CharNgramTfidf"
PAIR_SEPARATOR = "\n"  # normalised texts hold no line break, so no n-gram is mistaken for one across a pair
_SPACES = re.compile(r"\s\s+")


@dataclass(frozen=True, slots=True)
class NgramTokenizer:
    """Turns a text into the numbers of the n-grams that the training texts had, and their weights.

    vocabulary: n-gram → row of the linear layer. idf: (n_ngrams,) smoothed inverse document frequencies.
    """

    padding: ClassVar[dict[str, int]] = {"ngram_ids": 0, "ngram_weights": 0}

    vocabulary: Mapping[str, int]
    idf: FloatArray
    smallest: int = 1
    largest: int = 3

    def encode(self, texts: Sequence[Text]) -> list[Encoded]:
        """`ngram_ids` int64 and `ngram_weights` float32 a text, weights of unit length; never empty, never cut."""
        return [self._encode(text) for text in texts]

    def _encode(self, text: Text) -> Encoded:
        counts = Counter(self.vocabulary.get(ngram, -1) for ngram in self._ngrams(joined(text)))
        counts.pop(-1, None)
        if not counts:
            return Encoded({"ngram_ids": np.zeros(1, np.int64), "ngram_weights": np.zeros(1, np.float32)})
        ids = np.fromiter(counts, np.int64, len(counts))
        weights = (1 + np.log(np.fromiter(counts.values(), np.float32, len(counts)))) * self.idf[ids]
        weights /= np.linalg.norm(weights)
        return Encoded({"ngram_ids": ids, "ngram_weights": weights.astype(np.float32)})

    def _ngrams(self, text: str) -> chain[str]:
        text = _SPACES.sub(" ", text.lower())
        sizes = range(self.smallest, self.largest + 1)
        return chain.from_iterable(
            (text[start : start + size] for start in range(len(text) - size + 1)) for size in sizes
        )

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json`; the vocabulary stands in the order of its numbers."""
        ngrams = sorted(self.vocabulary, key=self.vocabulary.__getitem__)
        write_json(
            folder / "tokenizer.json",
            {
                "model": {
                    "type": TYPE,
                    "smallest": self.smallest,
                    "largest": self.largest,
                    "vocabulary": ngrams,
                    "idf": [round(float(value), 6) for value in self.idf],
                }
            },
        )


def joined(text: Text) -> str:
    """A text, or the two of a pair, as one string."""
    return text.text if text.pair is None else text.text + PAIR_SEPARATOR + text.pair


def load(folder: Path) -> NgramTokenizer:
    """The tokenizer that `save` wrote into `folder`."""
    settings = read_json(folder / "tokenizer.json")["model"]
    return NgramTokenizer(
        vocabulary={ngram: number for number, ngram in enumerate(settings["vocabulary"])},
        idf=np.array(settings["idf"], np.float32),
        smallest=settings["smallest"],
        largest=settings["largest"],
    )
