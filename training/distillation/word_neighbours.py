"""Words that stand among the same words: neighbours by vectors that are counted from the texts themselves.

Positive pointwise mutual information of words and the words around them, in as many dimensions as say most of it (Levy,
Goldberg and Dagan 2015): for a small corpus as good as trained vectors, and nothing has to be fetched.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import TruncatedSVD

from model.tokenization.segment import segment
from model.types import Text
from training.distillation.replacing import Draft

WINDOW = 3  # words on either side
FEWEST = 5  # times that a word has to stand somewhere
MOST_WORDS = 30_000
DIMENSIONS = 100
CANDIDATES = 15  # neighbours that one is drawn from


class WordNeighbours:
    """A replacer by the words around words in `texts`. Words that stand there too seldom are left as they are."""

    def __init__(self, texts: Sequence[Text], *, seed: int) -> None:
        sentences = [segment(part) for text in texts for part in text if part]
        counts = Counter(word for words in sentences for word in words if word.isalpha())
        self.words = [word for word, count in counts.most_common(MOST_WORDS) if count >= FEWEST]
        self.number = {word: number for number, word in enumerate(self.words)}
        self._found: dict[int, NDArray[np.int64]] = {}
        self._sentences, self._seed = sentences, seed

    def __call__(self, drafts: Sequence[Draft], random: np.random.Generator) -> list[list[str]]:
        """One of the nearest neighbours of each chosen word."""
        return [[self._other(draft.words[place], random) for place in draft.chosen] for draft in drafts]

    def _other(self, word: str, random: np.random.Generator) -> str:
        number = self.number.get(word)
        if number is None or len(self.words) < 2:
            return word
        if number not in self._found:
            likeness = self.vectors @ self.vectors[number]
            likeness[number] = -np.inf
            self._found[number] = np.argsort(-likeness)[: min(CANDIDATES, len(self.words) - 1)]
        return self.words[int(random.choice(self._found[number]))]

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """(n_words, dimensions), each of length 1."""
        information = _positive_information(self._together())
        n_dimensions = min(DIMENSIONS, len(self.words) - 1)
        vectors = TruncatedSVD(n_dimensions, random_state=self._seed).fit_transform(information).astype(np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: NDArray[np.float32] = vectors / np.maximum(lengths, 1e-12)
        return unit

    def _together(self) -> sparse.csr_matrix:
        """(n_words, n_words) how often each word stands near each."""
        left: list[int] = []
        right: list[int] = []
        for words in self._sentences:
            numbers = [self.number.get(word) for word in words]
            for place, number in enumerate(numbers):
                for other in numbers[place + 1 : place + 1 + WINDOW]:
                    if number is not None and other is not None:
                        left.append(number)
                        right.append(other)
        shape = (len(self.words), len(self.words))
        pairs = sparse.coo_matrix((np.ones(len(left)), (left, right)), shape).tocsr()
        return pairs + pairs.T


def _positive_information(together: sparse.csr_matrix) -> sparse.csr_matrix:
    entries = together.tocoo()
    totals = np.asarray(together.sum(1)).ravel()
    information = np.log(entries.data * totals.sum() / (totals[entries.row] * totals[entries.col]))
    return sparse.csr_matrix((np.maximum(information, 0), (entries.row, entries.col)), together.shape)
