"""Texts in figures: how long they are, in which writing systems, and how many tokens a model makes of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

import numpy as np
from numpy.typing import NDArray

from model.text import Normaliser, Width
from model.types import IntArray, Text

CODE_POINTS = 0x110000
CharacterCounts = NDArray[np.uint16]


class Script(IntEnum):
    """What a character is, as a column of counts."""

    HAN = 0  # written alike in simplified and in traditional Chinese, or rare in both
    SIMPLIFIED = 1
    TRADITIONAL = 2
    LATIN = 3
    KANA = 4
    HANGUL = 5
    CYRILLIC = 6
    OTHER = 7  # letters of other writing systems
    DIGITS = 8
    MARKS = 9  # punctuation, symbols, spaces
    EMOJI = 10
    BROKEN = 11  # replacement characters, controls, private use: of a wrong encoding


HAN = (Script.HAN, Script.SIMPLIFIED, Script.TRADITIONAL)
# What stands for a writing system of its own; Han is one of them.
WRITING_SYSTEMS = {
    "汉字 Han": HAN,
    "拉丁 Latin": (Script.LATIN,),
    "假名 kana": (Script.KANA,),
    "谚文 hangul": (Script.HANGUL,),
    "西里尔 Cyrillic": (Script.CYRILLIC,),
    "其他文字 others": (Script.OTHER,),
}
# Later ranges go over earlier ones.
_RANGES = (
    (Script.BROKEN, ((0, 0x1F), (0x7F, 0x9F), (0xD800, 0xF8FF), (0xFFF0, 0xFFFF), (0xE0000, 0x10FFFF))),
    (
        Script.MARKS,
        (
            (0x09, 0x0D),
            (0x20, 0x2F),
            (0x3A, 0x40),
            (0x5B, 0x60),
            (0x7B, 0x7E),
            (0xA0, 0xBF),
            (0xD7, 0xD7),
            (0xF7, 0xF7),
            (0x2000, 0x2BFF),
            (0x3000, 0x303F),
            (0x3200, 0x33FF),
            (0xFE30, 0xFE6F),
            (0xFF00, 0xFFEF),
        ),
    ),
    (Script.DIGITS, ((0x30, 0x39), (0xFF10, 0xFF19))),
    (
        Script.LATIN,
        (
            (0x41, 0x5A),
            (0x61, 0x7A),
            (0xAA, 0xAA),
            (0xBA, 0xBA),
            (0xC0, 0xD6),
            (0xD8, 0xF6),
            (0xF8, 0x24F),
            (0x1E00, 0x1EFF),
            (0xFF21, 0xFF3A),
            (0xFF41, 0xFF5A),
        ),
    ),
    (Script.CYRILLIC, ((0x400, 0x52F), (0x1C80, 0x1C8F))),
    (Script.KANA, ((0x3041, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F))),
    (Script.HANGUL, ((0x1100, 0x11FF), (0x3130, 0x318F), (0xA960, 0xA97F), (0xAC00, 0xD7FF), (0xFFA0, 0xFFDC))),
    (Script.EMOJI, ((0x200D, 0x200D), (0x20E3, 0x20E3), (0x2600, 0x27BF), (0xFE0F, 0xFE0F), (0x1F000, 0x1FAFF))),
    (
        Script.HAN,
        ((0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF)),
    ),
)
_COMMON_HAN = (0x4E00, 0x9FFF)


@dataclass(frozen=True, slots=True)
class Measures:
    """Of n texts, a pair measured as one text.

    lengths: (n,), characters. scripts: (n, len(Script)), how many characters are of each.
    surprisal: (n,), bits a character under the library's own bigrams. tokens: (n,), exact, if a tokenizer was given.
    """

    lengths: IntArray
    scripts: CharacterCounts
    surprisal: NDArray[np.float32]
    tokens: IntArray | None = None

    def estimated_tokens(self) -> IntArray:
        """(n,), about as many as a Chinese BERT's vocabulary makes: one a Chinese character or mark, one for about four
        Latin letters or two digits, and two special ones."""
        counts = self.scripts.astype(np.int64)
        latin, digits = counts[:, Script.LATIN], counts[:, Script.DIGITS]
        spaces_and_all = counts.sum(axis=1) - latin - digits
        return np.asarray(2 + spaces_and_all + -(-latin // 4) + -(-digits // 2))


def scripts_of(texts: Sequence[str]) -> CharacterCounts:
    """(n, len(Script)), how many characters of each script the texts have."""
    kinds = len(Script)
    points = code_points("".join(texts))
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    counts = np.bincount(rows * kinds + _scripts()[points], minlength=len(texts) * kinds)
    return counts.reshape(len(texts), kinds).astype(np.uint16)  # a text and its pair have 40,000 characters at most


def joined(text: Text) -> str:
    """A text and its pair as one."""
    return text.text if text.pair is None else f"{text.text} {text.pair}"


def code_points(text: str) -> NDArray[np.uint32]:
    """(len(text),)."""
    return np.frombuffer(text.encode("utf-32-le", errors="surrogatepass"), dtype=np.uint32)


@cache
def _scripts() -> NDArray[np.int64]:
    """(`CODE_POINTS`,), the script of each character."""
    table = np.full(CODE_POINTS, Script.OTHER, dtype=np.int64)
    for script, ranges in _RANGES:
        for first, last in ranges:
            table[first : last + 1] = script
    start, end = _COMMON_HAN
    characters = [chr(code) for code in range(start, end + 1)]
    simplify = Normaliser(width=Width.KEEP, simplify=True, markup=False)
    simple = simplify(" ".join(characters)).split(" ")  # one by one, or phrases would be looked for
    for code, character, simplified in zip(range(start, end + 1), characters, simple, strict=True):
        # 后 and 里 are written in both: what the old standard of the mainland has, or that of Taiwan, decides
        if simplified != character and not _is_in(character, "gb2312"):
            table[code] = Script.TRADITIONAL
        elif _is_in(character, "gb2312") and not _is_in(character, "big5"):
            table[code] = Script.SIMPLIFIED
    return table


def _is_in(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
