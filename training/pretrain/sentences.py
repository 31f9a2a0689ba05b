"""Where sentences end: the units that windows are made of."""

import re
from itertools import pairwise

_CLOSERS = "”’」』】》〉）〕)\\]\"'"
# Chinese ends of sentences stand by themselves. Of the Western ones, ! ? ; count where a space, a Chinese character
# or the end follows (so that ?id=1 in an address stays whole), a full stop only before a space and a capital or digit.
_CHINESE = f"[。！？；…]+[{_CLOSERS}]*"
_WESTERN = f"[!?;]+[{_CLOSERS}]*(?=\\s|[\u3400-\u9fff]|$)|\\.[{_CLOSERS}]*(?=\\s+[A-Z0-9\u3400-\u9fff])"
_NEAR = 1_000  # characters; nearly every text has the end of a sentence among its last ones
_END = re.compile(f"(?:{_CHINESE}|{_WESTERN})\\s*")


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph, stripped; closing quotes and brackets stay with what they close.

    A paragraph without the end of a sentence, a title say, is one sentence.
    """
    bounds = [0, *(end.end() for end in _END.finditer(paragraph)), len(paragraph)]
    return [found for start, end in pairwise(bounds) if (found := paragraph[start:end].strip())]


def last_end(text: str) -> int:
    """The offset just behind the last sentence that ends in `text`; 0 where none does.

    What ends at the very end of `text` does not count: its closing quote may be still to come.
    """
    for start in (max(len(text) - _NEAR, 0), 0):
        if before := [end.end() for end in _END.finditer(text, start) if end.end() < len(text)]:
            return before[-1]
    return 0
