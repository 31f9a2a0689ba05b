"""Where a vocabulary comes from: trained on the corpus, a `vocab.txt`, or the tokenizer of the start of a model.

Each way fills a folder with `tokenizer.json` and says in a few figures what was done. What is counted are the
documents that models are trained on, a sample of them where there are very many; the same corpus and seed give the
same vocabulary.
"""

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from model.console import progress, say
from model.errors import BadInput
from model.tokenization.subwords import FEWEST_TOKENS
from model.tokenization.words import LONGEST_WORD, WordTokenizer, words_of
from model.types import preview
from training.pretrain import wordpiece
from training.pretrain.configs import SMALLEST
from training.pretrain.corpus import Corpus
from training.pretrain.sentences import sentences
from training.pretrain.survey import Survey
from training.pretrain.wordpiece import SPECIAL_TOKENS

SAMPLE_CHARACTERS = 100_000_000  # of a sample; more text hardly changes which characters and words are frequent
_MOST_CHARACTERS = 0.75  # of a vocabulary; the rest is left to pieces of words
_MOST_COUNTED = 2_000_000  # different words counted at a time; those seen once go when there are more
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
# A run of letters and digits that are no Chinese characters, by the blocks that BERT's tokenizer sets apart.
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f"
_WORD = re.compile(f"[^\\W_{_IDEOGRAPHS}]+")


def train_wordpiece(
    corpus: Corpus, survey: Survey, *, size: int, folder: Path, sample_characters: int = SAMPLE_CHARACTERS
) -> dict[str, Any]:
    """A WordPiece vocabulary of `size` tokens at most, special ones included, in the frame of BERT.

    Raises:
        BadInput: `size` leaves no room for characters, or the corpus has hardly any.
    """
    if size < SMALLEST:
        raise BadInput(f"a vocabulary of {size} tokens is too small for Chinese; take thousands, {SMALLEST} at least")
    characters = np.zeros(0x110000, np.int64)
    words = Counter[str]()
    for document in _sample(corpus, survey, sample_characters):
        text = "\n".join(document).lower()
        points, counts = np.unique(np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32), return_counts=True)
        characters[points] += counts
        words.update(_WORD.findall(text))
        _forget_rare(words)
    normalise = wordpiece.normaliser(lower_case=True).normalize_str
    seen, spelled = Counter[str](), Counter[str]()
    for point in np.flatnonzero(characters):
        for character in normalise(chr(point)).strip():
            seen[character] += int(characters[point])
    for word, count in words.items():
        for part in normalise(word).split():
            spelled[part] += count
    frequent = [one for one, count in seen.items() if count >= wordpiece.FEWEST_TIMES and not one.isspace()]
    if len(frequent) < FEWEST_TOKENS:
        raise BadInput(f"the corpus has only {len(frequent)} characters that occur twice; give more text")
    frequent.sort(key=lambda one: (-seen[one], one))
    kept = frequent[: int((size - len(SPECIAL_TOKENS)) * _MOST_CHARACTERS)]
    tokens = wordpiece.pieces(spelled, characters=kept, size=size)
    wordpiece.save(folder, tokens, lower_case=True)
    if len(tokens) < size:
        say(f"语料只够 {len(tokens):,} 个词元 | the corpus gives {len(tokens):,} tokens, not {size:,}")
    covered = sum(seen[one] for one in kept) / seen.total()
    return _said(
        {"kind": "wordpiece", "tokens": len(tokens), "characters": len(kept), "covered": covered},
        survey,
        sample_characters,
    )


def train_words(
    corpus: Corpus,
    survey: Survey,
    *,
    n_words: int,
    n_characters: int,
    folder: Path,
    longest_word: int = LONGEST_WORD,
    sample_characters: int = SAMPLE_CHARACTERS,
) -> dict[str, Any]:
    """For ELMo: the `n_words` most frequent words of jieba, and the `n_characters` that words are spelled with.

    Raises:
        BadInput: the numbers leave room for none, or the corpus has hardly any words.
    """
    counts = Counter[str]()
    for document in _sample(corpus, survey, sample_characters):
        for paragraph in document:
            for sentence in sentences(paragraph):  # as the store cuts them into words
                counts.update(words_of(sentence))
        _forget_rare(counts)
    tokenizer = WordTokenizer.from_counts(counts, n_words=n_words, n_characters=n_characters, longest_word=longest_word)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(folder)
    found = {"kind": "words", "tokens": tokenizer.vocabulary_size, "characters": tokenizer.n_characters}
    covered = sum(counts[word] for word in tokenizer.words) / counts.total()
    return _said({**found, "covered": covered}, survey, sample_characters)


def take_vocabulary(path: Path, folder: Path) -> dict[str, Any]:
    """The WordPiece vocabulary of a `vocab.txt`, a token a line; lower-cased unless it knows capital letters.

    Raises:
        BadInput: as `read_vocabulary`.
    """
    tokens = read_vocabulary(path)
    lower_case = sum(chr(point) in tokens for point in range(ord("A"), ord("Z") + 1)) < 20
    wordpiece.save(folder, tokens, lower_case=lower_case)
    return {"kind": "vocab.txt", "tokens": len(tokens), "lower_case": lower_case}


def read_vocabulary(path: Path) -> list[str]:
    """The tokens of a `vocab.txt`.

    Raises:
        BadInput: it can't be read, holds a token twice or hardly any, or lacks a special token.
    """
    try:
        tokens = path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    except FileNotFoundError:
        raise BadInput(f"the vocabulary {path} is not there; check the name") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the vocabulary {path} can't be read: {error}; it has to be UTF-8, a token a line") from None
    if lacking := [token for token in SPECIAL_TOKENS if token not in tokens]:
        raise BadInput(f"the vocabulary {path} lacks {preview(lacking)}; add a line for each, or train one anew")
    if twice := [token for token, count in Counter(tokens).items() if count > 1]:
        first, second = [number for number, token in enumerate(tokens, 1) if token == twice[0]][:2]
        raise BadInput(f"the vocabulary {path} holds {twice[0]!r} in line {first:,} and in line {second:,}; keep one")
    if len(tokens) < len(SPECIAL_TOKENS) + FEWEST_TOKENS:
        raise BadInput(f"the vocabulary {path} has only {len(tokens)} tokens; every text would be unknown to it")
    return tokens


def take_tokenizer(start: Path, folder: Path) -> dict[str, Any]:
    """The tokenizer of the model in `start`, whose pretraining is continued, as it is.

    Raises:
        BadInput: there is none.
    """
    if not (start / "tokenizer.json").exists():
        if (start / "vocab.txt").exists():
            return take_vocabulary(start / "vocab.txt", folder)
        raise BadInput(f"{start} has no tokenizer.json and no vocab.txt; copy the whole folder again")
    folder.mkdir(parents=True, exist_ok=True)
    for name in TOKENIZER_FILES:
        if (start / name).exists():
            shutil.copyfile(start / name, folder / name)
    return {"kind": "start", "name": start.absolute().name}


def _sample(corpus: Corpus, survey: Survey, characters: int) -> Iterator[list[str]]:
    """The documents to train on, or so many of them that they have about `characters`."""
    share = min(characters / max(survey.characters, 1), 1.0)
    with progress("数词 | counting words (MB)", corpus.bytes / 1e6) as advance:
        for document, hashed in survey.hashed(corpus, lambda read: advance(read / 1e6)):
            # What is held out was chosen by the first bytes, so the last ones are as good as any chance.
            if hashed not in survey.held_out and int.from_bytes(hashed[8:]) < share * 2**64:
                yield document


def _forget_rare(counts: Counter[str]) -> None:
    """Keep memory flat: where there are too many different words, those seen once are taken for names and slips."""
    if len(counts) > _MOST_COUNTED:
        for word in [word for word, count in counts.items() if count < 2]:
            del counts[word]


def _said(found: dict[str, Any], survey: Survey, sample_characters: int) -> dict[str, Any]:
    sampled = min(sample_characters, survey.characters)
    return {**found, "covered": round(found["covered"], 6), "counted_characters": sampled, "seed": survey.seed}
