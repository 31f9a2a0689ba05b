"""Browse the samples of a library: search, filter, sort, and go through them page by page or step by step."""

import json
from dataclasses import dataclass

import sqlalchemy as sa

from app.library.cataloguing import ensure_catalogue
from app.library.cells import label_name, label_names
from app.store.database import connect, reading
from app.store.libraries import Library, LibraryDefinition, get_library
from app.store.listing import (
    Filter,
    Handle,
    ListedSample,
    Sort,
    SortKey,
    count_rows,
    find_place,
    label_lists,
    read_listed,
    rows_after,
    rows_from,
)
from app.store.search import REACH, search_after, search_from
from model.errors import BadInput, UnknownLabel, UnknownSample
from model.text import Normaliser
from model.types import preview

MAX_PER_PAGE = 500
MAX_QUERY_CHARS = 1_000
SORTS = tuple(f"{sign}{key}" for key in SortKey for sign in ("", "-"))


@dataclass(frozen=True, slots=True)
class SamplePage:
    """Some of the samples that were asked for, in order.

    query: what was searched for, as the library's texts are written; None where nothing was. total: how many samples
    there are in all, at least so many unless `total_is_exact`; None where `after` walks through them, which doesn't
    count. next: the `after` of the samples that follow, None where none do.
    """

    samples: tuple[ListedSample, ...]
    query: str | None
    total: int | None
    total_is_exact: bool
    next: str | None


def browse(
    engine: sa.Engine,
    *,
    library: str,
    query: str = "",
    label: str | None = None,
    unlabelled: bool = False,
    conflict: bool = False,
    sort: str = "arrival",
    page: int = 1,
    per_page: int = 20,
    after: str | None = None,
) -> SamplePage:
    """The samples of `library` whose text or pair holds `query`, at most `per_page` of them.

    label: only samples that carry it, alone or among others, by its name, code or an alias; of a taxonomy with levels
    also a branch, which means all below it. unlabelled: only samples without labels. conflict: only those in conflict.
    sort: `arrival`, `id` or `labels`, with a minus in front from the last to the first. page: 1, 2, 3, …, or instead of
    it `after`: the id of the sample that stands before the first one to list, however far into the library.

    Raises:
        UnknownLibrary: there is none. UnknownLabel: the label is not in the taxonomy. UnknownSample: `after` is no
        sample of the library. BadInput: an option has no such value, two exclude each other, or the page of a search is
        too far into it.
    """
    order = _sort(sort)
    _check(query, label, page, per_page, after, unlabelled=unlabelled)
    ensure_catalogue(engine, library)
    with connect(engine) as connection, reading(connection):
        source = get_library(connection, library)
        piece = search_text(query, source.definition.normaliser)
        which = _filter(connection, source, label, unlabelled=unlabelled, conflict=conflict)
        total, is_exact = None, False
        if after is not None:
            rows = _step(connection, which, order, piece, after, library=library, limit=per_page + 1)
        else:
            rows, total, is_exact = _page(connection, which, order, piece, (page - 1) * per_page, per_page)
        shown = read_listed(connection, source.id, order, rows[:per_page])
    return SamplePage(
        samples=tuple(shown),
        query=piece or None,
        total=total,
        total_is_exact=is_exact,
        next=shown[-1].id if len(rows) > per_page else None,
    )


def search_text(query: str, normaliser: Normaliser) -> str:
    """What is looked for: the query as the library's texts are written, or as it is where that leaves nothing."""
    return normaliser(query) or query.strip()


def _check(query: str, label: str | None, page: int, per_page: int, after: str | None, *, unlabelled: bool) -> None:
    if not 1 <= per_page <= MAX_PER_PAGE:
        raise BadInput(f"per_page {per_page}: give a number from 1 to {MAX_PER_PAGE}")
    if page < 1:
        raise BadInput(f"page {page}: pages are numbered from 1")
    if page > 1 and after is not None:
        raise BadInput(f"page {page} and after {after[:40]!r} exclude each other; give one of them")
    if label is not None and unlabelled:
        raise BadInput(f"label {label[:40]!r} and unlabelled exclude each other; give one of them")
    if len(query) > MAX_QUERY_CHARS:
        raise BadInput(
            f"the query has {len(query):,} characters, more than {MAX_QUERY_CHARS:,}; search for a part of it"
        )
    if any("\ud800" <= char <= "\udfff" for char in query):
        raise BadInput("the query holds half of a surrogate pair, not a character")


def _sort(sort: str) -> Sort:
    if sort not in SORTS:
        raise BadInput(f"sort {sort[:40]!r}: give one of {', '.join(SORTS)}")
    return Sort(SortKey(sort.removeprefix("-")), descending=sort.startswith("-"))


def _filter(
    connection: sa.Connection, source: Library, label: str | None, *, unlabelled: bool, conflict: bool
) -> Filter:
    lists = None
    if label is not None:
        wanted = labels_meant(source.definition, label)
        lists = tuple(some for some in label_lists(connection, source.id) if wanted.intersection(json.loads(some)))
    return Filter(source.id, label_lists=lists, unlabelled=unlabelled, conflict=conflict)


def labels_meant(definition: LibraryDefinition, label: str) -> frozenset[str]:
    """The labels of the taxonomy that `label` stands for: one of them, by any of its names, or all below a branch.

    Raises:
        UnknownLabel: none of the taxonomy's.
    """
    name, taxonomy = label_name(label), definition.taxonomy
    meant = label_names(definition).get(name, name)
    levels = taxonomy.levels(meant)
    found = frozenset(known for known in taxonomy.labels if taxonomy.levels(known)[: len(levels)] == levels)
    if not found:
        raise UnknownLabel(
            f"label {name!r} is not in the taxonomy of library {definition.name!r} ({preview(taxonomy.labels)})"
        )
    return found


def _page(
    connection: sa.Connection, which: Filter, order: Sort, piece: str, offset: int, per_page: int
) -> tuple[list[Handle], int, bool]:
    """The rows of a page, and one more if there are more; how many there are in all, and whether that is exact."""
    if which.label_lists == ():
        return [], 0, True
    if not piece:
        total = count_rows(connection, which)
        rows = rows_from(connection, which, order, offset=offset, limit=per_page + 1, total=total)
        return rows, total, True
    if offset + per_page > REACH:
        raise BadInput(
            f"page {offset // per_page + 1} of {per_page}: a search has pages up to its sample {REACH:,}; "
            "walk on with after, or search for something rarer"
        )
    found = search_from(connection, which, order, piece, offset=offset, limit=per_page + 1)
    return found.rows, found.total, found.total_is_exact


def _step(
    connection: sa.Connection, which: Filter, order: Sort, piece: str, after: str, *, library: str, limit: int
) -> list[Handle]:
    place = find_place(connection, which.library_id, after)
    if place is None:
        raise UnknownSample(f"after {after[:40]!r}: library {library!r} has no sample of that id; take next of a page")
    if which.label_lists == ():
        return []
    if piece:
        return search_after(connection, which, order, piece, after=place, limit=limit)
    return rows_after(connection, which, order, after=place, limit=limit)
