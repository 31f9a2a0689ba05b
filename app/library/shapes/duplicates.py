"""Near duplicates, as commands print them and HTTP answers them."""

from typing_extensions import TypedDict

from app.library.duplicates import DuplicateGroup, Duplicates
from model.near import NearSettings


class MemberShape(TypedDict):
    """A sample of a group, and its current labels; None without any."""

    sample: str
    text: str
    pair: str | None
    labels: list[str] | None


class NearPairShape(TypedDict):
    """The ids of two samples that are near, how similar they are, and whether both have labels that differ."""

    left: str
    right: str
    similarity: float
    conflict: bool


class GroupShape(TypedDict):
    """Samples that are near each other, or have near ones between them. size: of the whole group."""

    size: int
    conflict: bool
    members: list[MemberShape]
    pairs: list[NearPairShape]


class DuplicatesShape(TypedDict):
    """Some groups, the largest first, and how much there is in all.

    samples: in the library. groups, grouped: groups of two or more, and the samples in them. conflicting: groups whose
    labels differ.
    """

    samples: int
    groups: int
    grouped: int
    conflicting: int
    threshold: float
    page: list[GroupShape]


def duplicates_shape(found: Duplicates, settings: NearSettings) -> DuplicatesShape:
    """What was found with `settings`."""
    return {
        "samples": found.samples,
        "groups": found.groups,
        "grouped": found.grouped,
        "conflicting": found.conflicting,
        "threshold": settings.threshold,
        "page": [_group(group) for group in found.page],
    }


def _group(group: DuplicateGroup) -> GroupShape:
    return {
        "size": group.size,
        "conflict": group.conflict,
        "members": [
            {
                "sample": member.sample.id,
                "text": member.sample.text,
                "pair": member.sample.pair,
                "labels": list(member.labels) if member.labels is not None else None,
            }
            for member in group.members
        ],
        "pairs": [
            {"left": pair.left, "right": pair.right, "similarity": pair.similarity, "conflict": pair.conflict}
            for pair in group.pairs
        ],
    }
