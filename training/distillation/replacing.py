"""More texts like those of train: some words of each replaced by others that could stand there (Jiao 2020, 3.2).

The paper's own replaces English sub-words. Chinese has no spaces: here words are those of jieba, and a word is replaced
whole, by one that stands in the same kind of writing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from model.tokenization.segment import segment
from model.types import Text

SHARE = 0.3  # of a text's words that are replaced, one at least


@dataclass(frozen=True, slots=True)
class Draft:
    """A text in words, and which of them are to be replaced."""

    words: tuple[str, ...]
    chosen: tuple[int, ...]

    @property
    def text(self) -> str:
        return "".join(self.words)

    def filled(self, others: Sequence[str]) -> str:
        """The text with `others` in place of the chosen words."""
        words = list(self.words)
        for place, other in zip(self.chosen, others, strict=True):
            words[place] = other
        return "".join(words)


class Replacer(Protocol):
    """Finds other words."""

    def __call__(self, drafts: Sequence[Draft], random: np.random.Generator) -> list[list[str]]:
        """For each draft a word in place of each chosen one; the word itself where there is no other."""
        ...


def draft(text: str, random: np.random.Generator) -> Draft:
    """`text` with some of its words chosen by lot; words without a letter stay."""
    words = tuple(segment(text))
    able = [place for place, word in enumerate(words) if word.isalpha()]
    n_chosen = min(len(able), max(1, round(SHARE * len(able))))
    return Draft(words, tuple(sorted(random.choice(able, n_chosen, replace=False).tolist())) if able else ())


def replaced(
    texts: Sequence[Text], replacer: Replacer, *, copies: int, seed: int, at_once: int = 256
) -> Iterator[tuple[Text, Text]]:
    """Each text with up to `copies` different ones made of it. Of a pair both texts are changed.

    The copies of a text follow from `seed` and its place.
    """
    for start in range(0, len(texts), at_once):
        some = texts[start : start + at_once]
        random = np.random.default_rng([seed, start])
        made: list[set[Text]] = [set() for _ in some]
        for _ in range(copies):
            firsts = _changed([text.text for text in some], replacer, random)
            seconds = _changed([text.pair or "" for text in some], replacer, random)
            for own, text, first, second in zip(made, some, firsts, seconds, strict=True):
                own.add(Text(first, None if text.pair is None else second))
        for text, own in zip(some, made, strict=True):
            yield from ((text, other) for other in sorted(own - {text}, key=str))


def _changed(texts: Sequence[str], replacer: Replacer, random: np.random.Generator) -> list[str]:
    drafts = [draft(text, random) for text in texts]
    return [one.filled(others) for one, others in zip(drafts, replacer(drafts, random), strict=True)]
