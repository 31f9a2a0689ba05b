"""Words by jieba and their characters: what ELMo reads, from a word vocabulary and a character vocabulary."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.errors import BadInput
from model.files import read_json, write_json
from model.tokenization.base import Encoded, share
from model.tokenization.segment import segment
from model.types import Text, preview

TYPE = "JiebaWords"
# Never the word of a text: segmentation leaves no `<` joined to a letter.
SPECIAL_WORDS = ("<pad>", "<unk>", "<s>", "</s>", "<sep>")
PADDING, UNKNOWN, BEGIN_TEXT, END_TEXT, SEPARATOR = range(len(SPECIAL_WORDS))
# The first characters stand for padding, an unknown character, and a word's two ends; then comes one a special word,
# which is spelled by it alone, so that special words have vectors as all others have (Peters 2018).
CHARACTER_PADDING, UNKNOWN_CHARACTER, BEGIN_WORD, END_WORD, _FIRST_SPECIAL = range(5)
FIRST_CHARACTER = _FIRST_SPECIAL + len(SPECIAL_WORDS)
WORD_ENDS = 2  # every word is spelled with a mark at its begin and one at its end
LONGEST_WORD = 10  # characters; of jieba's words one in a thousand is longer
FEWEST_WORDS = 10  # as for sub-words: no real vocabulary is smaller
# Names, new words, numbers and Latin letters, on which editions of jieba differ.
PROBE = "小明昨天在网易杭研大厦用apt-get装了linux-2.6.11，花了¥350.5，真给力！"


class Words(NamedTuple):
    """ids: (length,) int64 word ids; characters: (length, word_length) int64 character ids, whatever the word."""

    ids: NDArray[np.int64]
    characters: NDArray[np.int64]


class WordTokenizer:
    """Gives `word_ids`, `char_ids` and `attention_mask`; safe to call from several threads.

    words: the vocabulary without special words, most frequent first, as the sampled softmax wants it.
    characters: the character vocabulary without special characters. longest_word: characters of a word that are read.
    characters_of_words: (vocabulary_size, word_length) int64, how every word of the vocabulary is spelled.
    """

    unknown_id = UNKNOWN

    def __init__(
        self,
        *,
        words: Sequence[str],
        characters: Sequence[str],
        longest_word: int = LONGEST_WORD,
        max_length: int = 512,
    ) -> None:
        self.words = tuple(words)
        self.characters = tuple(characters)
        self.longest_word = longest_word
        self.max_length = max_length
        self.vocabulary_size = len(SPECIAL_WORDS) + len(self.words)
        self.n_characters = FIRST_CHARACTER + len(self.characters)
        self.word_length = longest_word + WORD_ENDS
        self.padding = {"word_ids": PADDING, "char_ids": CHARACTER_PADDING, "attention_mask": 0}
        self._word_ids = {word: number for number, word in enumerate((*SPECIAL_WORDS, *self.words))}
        self._character_ids = {character: FIRST_CHARACTER + number for number, character in enumerate(self.characters)}
        self.characters_of_words = np.zeros((self.vocabulary_size, self.word_length), np.int64)
        for special in range(1, len(SPECIAL_WORDS)):
            self.characters_of_words[special, :3] = BEGIN_WORD, _FIRST_SPECIAL + special, END_WORD
        for row, word in zip(self.characters_of_words[len(SPECIAL_WORDS) :], self.words, strict=True):
            self._spell(word, row)

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, int],
        *,
        n_words: int,
        n_characters: int,
        longest_word: int = LONGEST_WORD,
        max_length: int = 512,
    ) -> "WordTokenizer":
        """The vocabularies of the most frequent words and characters of a corpus whose words are counted in `counts`.

        At most `n_words` words and `n_characters` characters, special ones included; of equal counts the first in the
        order of code points, so that equal counts give equal vocabularies.

        Raises:
            BadInput: there is no room but for special words, or hardly a word in `counts`.
        """
        if n_words < len(SPECIAL_WORDS) + FEWEST_WORDS or n_characters <= FIRST_CHARACTER:
            raise BadInput(
                f"{n_words} words and {n_characters} characters are too few for a vocabulary; give at least "
                f"{len(SPECIAL_WORDS) + FEWEST_WORDS} words and {FIRST_CHARACTER + 1} characters"
            )
        words = [word for word in counts if not word.isspace()]
        if len(words) < FEWEST_WORDS:
            raise BadInput(f"the corpus has only {len(words)} different words ({preview(words)}); give a larger one")
        spelling: Counter[str] = Counter()
        for word in words:
            for character in word:
                spelling[character] += counts[word]
        return cls(
            words=sorted(words, key=lambda word: (-counts[word], word))[: n_words - len(SPECIAL_WORDS)],
            characters=sorted(spelling, key=lambda one: (-spelling[one], one))[: n_characters - FIRST_CHARACTER],
            longest_word=longest_word,
            max_length=max_length,
        )

    def encode(self, texts: Sequence[Text]) -> list[Encoded]:
        """One encoding a text: begin-of-text, its words, for a pair a separator and more words, end-of-text."""
        return [self._encode(text) for text in texts]

    def encode_words(self, words: Sequence[str]) -> Words:
        """Ids and characters of `words` as they are, nothing added: what pretraining stores."""
        known = self._word_ids.get
        ids = np.fromiter((known(word, UNKNOWN) for word in words), np.int64, len(words))
        characters = self.characters_of_words[ids]
        for place in np.flatnonzero(ids == UNKNOWN).tolist():
            self._spell(words[place], characters[place])
        return Words(ids, characters)

    def _encode(self, text: Text) -> Encoded:
        first = words_of(text.text)
        second = None if text.pair is None else words_of(text.pair)
        lengths = (len(first), len(second or ()))
        kept = share(lengths, max(self.max_length - (2 if second is None else 3), 1))
        inside = first[: kept[0]] if second is None else [*first[: kept[0]], "<sep>", *second[: kept[1]]]
        ids, characters = self.encode_words(["<s>", *inside, "</s>"])
        return Encoded(
            inputs={"word_ids": ids, "char_ids": characters, "attention_mask": np.ones(len(ids), np.int64)},
            truncated=kept != lengths,
        )

    def _spell(self, word: str, row: NDArray[np.int64]) -> None:
        """Write the characters of `word`, and its ends, into `row` (word_length,)."""
        known = self._character_ids.get
        spelled = [known(character, UNKNOWN_CHARACTER) for character in word[: self.longest_word]]
        row[:] = CHARACTER_PADDING
        row[: len(spelled) + WORD_ENDS] = [BEGIN_WORD, *spelled, END_WORD]

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json`; the vocabularies stand in the order of their numbers."""
        write_json(
            folder / "tokenizer.json",
            {
                "model": {
                    "type": TYPE,
                    "longest_word": self.longest_word,
                    "characters": self.characters,
                    "words": self.words,
                    "probe": segment(PROBE),
                }
            },
        )


def words_of(text: str) -> list[str]:
    """The words of `text` by jieba, without the spaces between them."""
    return [word for word in segment(text) if not word.isspace()]


def load(folder: Path, *, max_length: int) -> WordTokenizer:
    """The tokenizer that `save` wrote into `folder`; a text and its pair are cut to `max_length` words together.

    Raises:
        BadInput: the file can't be read, its vocabularies are none, or jieba's words have changed since.
    """
    path = folder / "tokenizer.json"
    try:
        settings = read_json(path)["model"]
        words, characters = _vocabulary(settings, "words"), _vocabulary(settings, "characters")
        longest_word, probe = int(settings["longest_word"]), settings["probe"]
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} can't be read as a tokenizer of words: {error!r}; copy it again") from None
    if len(words) < FEWEST_WORDS or longest_word < 1:
        raise BadInput(
            f"{path} knows only {len(words)} words of at most {longest_word} characters, so every text would be "
            "unknown to it; make the vocabulary again"
        )
    if probe != (now := segment(PROBE)):
        raise BadInput(
            f"{path} was made with an edition of jieba that cuts texts otherwise: {'/'.join(map(str, probe))} then, "
            f"{'/'.join(now)} now; install the version of rjieba that the model was trained with"
        )
    return WordTokenizer(words=words, characters=characters, longest_word=longest_word, max_length=max_length)


def _vocabulary(settings: Mapping[str, Any], name: str) -> list[str]:
    entries = settings[name]
    if not all(isinstance(entry, str) and entry for entry in entries):
        raise ValueError(f"{name} holds an entry that is no text")
    if twice := [entry for entry, count in Counter(entries).items() if count > 1]:
        raise ValueError(f"{name} holds {json.dumps(twice[0], ensure_ascii=False)} twice")
    return list(entries)
