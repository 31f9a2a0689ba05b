"""Chinese text to words: jieba's precise mode with its hidden Markov model for new words, in the Rust edition.

On Chinese its words are those of the Python edition; `apt-get`, `2.6.11` and `linux.cn`, which that one cuts in pieces,
stay whole. There is one edition only, so that a text has the same words in training and in serving.
"""

from collections.abc import Callable
from functools import cache


def segment(text: str) -> list[str]:
    """The words of `text`, punctuation and spaces among them: joined they are `text` again. From any thread."""
    return _cutter()(text)


@cache
def _cutter() -> Callable[[str], list[str]]:
    import rjieba  # reads its dictionary, so only where words are wanted

    return rjieba.cut
