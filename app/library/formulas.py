"""Cells that a spreadsheet would run as formulas, written so that it doesn't, and read back as they were.

A cell that begins with = + - @ (or their full-width forms, which some Excels read alike), a tab, or the end of a line
gets an apostrophe before it (https://owasp.org/www-community/attacks/CSV_Injection). So does one that has apostrophes
before such a character already; reading takes one away, so whatever was written comes back.
"""

import re

_RISKY = re.compile(r"'*[=+\-@＝＋－＠\t\r\n]")
_GUARDED = re.compile(r"'+[=+\-@＝＋－＠\t\r\n]")


def is_risky(cell: str) -> bool:
    """Whether `cell` would be taken for a formula, or for a guarded one."""
    return _RISKY.match(cell) is not None


def guarded(cell: str) -> str:
    """`cell` as any spreadsheet shows it and none runs it."""
    return f"'{cell}" if is_risky(cell) else cell


def unguarded(cell: str) -> str:
    """The inverse of `guarded`."""
    return cell[1:] if _GUARDED.match(cell) else cell
