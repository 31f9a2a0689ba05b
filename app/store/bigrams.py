"""The terms that texts are found by: pairs of neighbouring characters, and the last character alone.

So every character begins one of a text's terms, and a query of one character finds the terms that begin with it, one
of two characters is a term itself. A longer query needs all its pairs, and then a look at the text. ASCII letters
count without case. PostgreSQL works the terms of an index out by itself (see the migrations); SQLite is given them,
parted by spaces. Its `ascii` tokenizer drops what is ASCII and neither letter nor digit, so such characters are
indexed under others, of Unicode's private use: a text that holds those is found too often, and looked at.
"""

import operator
import re

MAX_TERMS = 32  # of one query; more of them exclude hardly a text more

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_TOKENS = _LOWER | {code: 0xE000 + code for code in range(128) if not chr(code).isalnum()}
_TRANSLATED = re.compile(f"[{re.escape(''.join(map(chr, _TOKENS)))}]")  # most texts hold nothing of the kind


def folded(text: str) -> str:
    """`text` with its ASCII letters in lower case, as SQL's `lower` has it on both databases."""
    return text.translate(_LOWER)


def index_terms(text: str) -> str:
    """What SQLite's search index takes in of a text."""
    tokens = text.translate(_TOKENS) if _TRANSLATED.search(text) else text
    return " ".join(map(operator.add, tokens, tokens[1:] + " "))


def needs_look(query: str) -> bool:
    """Whether a text can have all terms of `query` without holding it."""
    return len(query) > 2 or any("\ue000" <= char < "\ue080" for char in query.translate(_TOKENS))


def sqlite_query(query: str) -> str:
    """The FTS5 expression that finds all texts which hold `query`, and maybe others."""
    tokens = query.translate(_TOKENS)
    return f'"{tokens}" *' if len(tokens) == 1 else " AND ".join(f'"{term}"' for term in _terms(tokens))


def postgresql_query(query: str) -> str:
    """The `tsquery` that finds all texts which hold `query`, and maybe others."""
    quoted = [term.replace("\\", "\\\\").replace("'", "''") for term in _terms(folded(query))]
    return f"'{quoted[0]}':*" if len(query) == 1 else " & ".join(f"'{term}'" for term in quoted)


def _terms(query: str) -> list[str]:
    return list(dict.fromkeys(map(operator.add, query, query[1:])))[:MAX_TERMS] or [query]
