"""Libraries, as commands print them and HTTP answers them."""

from typing_extensions import TypedDict

from app.store.overview import LibraryOverview


class LibraryShape(TypedDict):
    """A library at a glance."""

    library: str
    samples: int
    snapshots: int
    created_at: str


class LibraryList(TypedDict):
    """All libraries."""

    libraries: list[LibraryShape]


def library_list(found: list[LibraryOverview]) -> LibraryList:
    """All libraries, by name."""
    return {
        "libraries": [
            {
                "library": overview.name,
                "samples": overview.samples,
                "snapshots": overview.snapshots,
                "created_at": overview.created_at,
            }
            for overview in found
        ]
    }
