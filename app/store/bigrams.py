"""The terms that texts are found by: pairs of neighbouring characters, and the last character alone.

So every character begins one of a text's terms, and a query of one character finds the terms that begin with it, one
of two characters is a term itself. PostgreSQL works the terms of an index out by itself (see the migrations); SQLite
is given them, parted by spaces, and its `ascii` tokenizer drops what is ASCII and neither letter nor digit.
"""

from itertools import pairwise


def index_terms(text: str) -> str:
    """What SQLite's search index takes in of a text."""
    lower = text.lower()
    return " ".join({first + second for first, second in pairwise(lower)} | {lower[-1:]})
