"""Words about shares, and how much they matter."""

from collections.abc import Sequence

from app.library.doctor.findings import Severity

EXAMPLES = 10  # of a finding


def graded(share: float, *, notable: float, serious: float) -> Severity:
    """How much a share, 0 to 1, matters; one of 0 does not."""
    if share >= serious:
        return Severity.SERIOUS
    return Severity.NOTABLE if share >= notable else Severity.FINE


def percent(part: float, whole: float) -> str:
    """`part` of `whole` as people read it."""
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f}%" if share >= 10 or share == 0 else f"{share:.1f}%" if share >= 0.1 else f"{share:.2g}%"


def named(names: Sequence[str], limit: int = 5) -> str:
    """The first few names."""
    return "、".join(names[:limit]) + ("…" if len(names) > limit else "")
