"""The only normaliser: what a text becomes before it is stored, trained on or classified.

Chinese punctuation means something (！ is not !), so compatibility forms are folded for letters and digits
and kept for punctuation, unless the settings say otherwise. The settings travel in snapshot and bundle.
"""

import hashlib
import html
import re
import unicodedata
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from json.encoder import encode_basestring
from typing import Any

from model.errors import BadText

# A text is a title, a review, an abstract or a page, not a book: no model here reads more than a few
# thousand characters, and one such text must not hold up everybody else's.
MAX_TEXT_CHARS = 20_000

# Tags that page scrapers leave behind. Other things in angle brackets are content: <红楼梦>.
_TAGS = re.compile(
    r"</?(?:a|b|body|br|center|div|em|font|h[1-6]|hr|html|i|img|li|ol|p|s|script|small|span|strong|style|sub|"
    r"sup|table|tbody|td|th|tr|u|ul)(?=[\s/>])[^<>]*>",
    re.IGNORECASE,
)
# Only whole entities: without its semicolon, `&reg` in http://…?page=1&region=2 would become ®.
_ENTITIES = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});|&nbsp(?![0-9A-Za-z=])")
_WHITESPACE = re.compile(r"\s+")
_NOT_LETTERS = re.compile(r"[\W_]+")
_EMOJI = "\u2600-\u27bf\ufe0f\U0001f000-\U0001faff"
# Controls (but not the white ones), soft hyphen, zero-width and bidirectional marks, byte-order marks,
# interlinear and tag characters; a zero-width joiner stays only between emoji, where it makes one of two.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f"
    f"\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]|(?<![{_EMOJI}])\u200d|\u200d(?![{_EMOJI}])"
)
# What most titles are made of, and what no setting but `Width.ALL` or `simplify` would change.
# Possessive (++), or a long title with one odd character at its end would take exponential time.
_PLAIN = re.compile("(?! )(?: ?[!-%'-;=-~\u4e00-\u9fff，。、！？：；（）《》【】“”‘’…—·]++)*+")


class Width(StrEnum):
    """Which compatibility forms are folded (Unicode NFKC): １２３ＡＢＣ, ①, ㎏, ：，％."""

    KEEP = "keep"
    LETTERS = "letters"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Normaliser:
    """Callable settings; applying them twice is the same as once.

    width: fold nothing, letters and digits only (Chinese punctuation stays as it is), or everything.
    simplify: turn traditional characters into simplified ones (OpenCC t2s).
    markup: decode HTML entities and drop leftover HTML tags.
    """

    width: Width = Width.LETTERS
    simplify: bool = False
    markup: bool = True

    def __call__(self, text: str) -> str:
        """The normalised form of `text`."""
        while not self._is_plain(text) and (normal := self._once(text)) != text:
            text = normal
        return text

    def to_json(self) -> dict[str, Any]:
        """The form in which snapshots and bundles carry the settings."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Normaliser":
        """The inverse of `to_json`."""
        return cls(width=Width(data["width"]), simplify=data["simplify"], markup=data["markup"])

    def _is_plain(self, text: str) -> bool:
        """Whether `text` is normal at first sight; one look costs a fifth of the way through `_once`."""
        return not self.simplify and self.width is not Width.ALL and _PLAIN.fullmatch(text) is not None

    def _once(self, text: str) -> str:
        if self.markup and ("&" in text or "<" in text):
            text = _TAGS.sub(" ", _ENTITIES.sub(lambda entity: html.unescape(entity[0]), text))
        if not text.isascii():
            text = _fold(text, self.width)
            if self.simplify:
                text = _simplified(text)
        return _WHITESPACE.sub(" ", _INVISIBLE.sub("", text)).strip()


def check_text(text: str, *, where: str) -> str:
    """`text` itself if it can be stored and classified; `where` names its place in the message.

    Raises:
        BadText: it is empty, longer than `MAX_TEXT_CHARS`, or holds half a character.
    """
    if len(text) > MAX_TEXT_CHARS:
        raise BadText(
            f"{where}: the text has {len(text):,} characters, more than {MAX_TEXT_CHARS:,}; split it into passages"
        )
    if not text.strip():
        raise BadText(f"{where}: the text is empty; leave it out")
    if not text.isascii() and (half := re.search("[\ud800-\udfff]", text)):
        raise BadText(f"{where}: character {half.start() + 1} is half of a surrogate pair, not a character")
    return text


def sample_id(text: str, pair: str | None = None) -> str:
    """The identity of a sample: 32 hex digits of the SHA-256 of its normalised text and pair."""
    # the bytes of canonical_json([text, pair]), made in half the time: every row of an import comes through here
    content = f"[{encode_basestring(text)},{'null' if pair is None else encode_basestring(pair)}]"
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def skeleton(text: str, pair: str | None) -> str:
    """The letters and digits of a text, in their compatibility forms and without case; a pair's follow a line break.

    Texts with the same skeleton are copies of each other.
    """
    return _letters(text) if pair is None else f"{_letters(text)}\n{_letters(pair)}"


def _letters(text: str) -> str:
    return _NOT_LETTERS.sub("", unicodedata.normalize("NFKC", text).casefold())


def _fold(text: str, width: Width) -> str:
    if width is Width.KEEP or unicodedata.is_normalized("NFKC", text):
        return text
    if width is Width.ALL:
        return unicodedata.normalize("NFKC", text)
    return _foldable_run().sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)


@cache
def _foldable_run() -> re.Pattern[str]:
    """Runs without the punctuation and symbols that NFKC would change."""
    kept = (chr(code) for code in range(0x80, 0x20000) if unicodedata.category(chr(code))[0] in "PS")
    changed = "".join(re.escape(char) for char in kept if unicodedata.normalize("NFKC", char) != char)
    return re.compile(f"[^{changed}]+")


def _simplified(text: str) -> str:
    try:
        return str(_simplifier().convert(text))
    except UnicodeEncodeError:  # half of a surrogate pair; `check_text` tells the caller where
        return text


@cache
def _simplifier() -> Any:
    from opencc import OpenCC  # loads its dictionaries, so only where it is used

    return OpenCC("t2s")
