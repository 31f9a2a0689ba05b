"""Merge: staged rows enter the library by a few set-based statements.

So the library is locked only for the short while of this last step, and what the import leaves does not depend on
the order of the rows.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from app.store.libraries import Library
from app.store.rollbacks import counting
from app.store.staging import Staging, new_samples, staged_files, staged_meanings, staged_rows
from app.store.tables import label_events, samples, sources
from app.store.taxonomies import load_translation
from model.files import canonical_json
from model.provenance import now

IMPORT_ACTOR = "wenlei library import"
_EVENT_COLUMNS = (
    *("library_id", "sample_id", "labels", "actor_kind", "actor", "source_id", "line", "created_at"),
    *("taxonomy_version", "confidence"),
)
MUCH_MORE, WORTH_IT = 4, 50_000  # so many times as many new samples as old ones, and at least so many
READERS_MS = 500  # that readers of samples get to come to their end; less than it takes to be told of a deadlock
_LOCK_NOT_AVAILABLE = "55P03"  # PostgreSQL's code
_SEARCH_INDEX = "SELECT indexdef FROM pg_indexes WHERE indexname = 'samples_bigrams' AND schemaname = current_schema()"
# PostgreSQL sorts new terms in memory before they enter the search index; in small portions that takes far longer.
_BULK_SETTINGS = ("gin_pending_list_limit = '128MB'", "work_mem = '256MB'", "maintenance_work_mem = '256MB'")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, or a sheet of one, that rows came from. `sha256`: of the file on disk."""

    name: str
    sha256: str


def merge(staging: Staging, library: Library, files: Iterable[SourceFile]) -> int:
    """Move the staged rows into the library, which is locked; the number of samples that it had not yet."""
    return _Merge(staging, library).run(files)


class _Merge:
    def __init__(self, staging: Staging, library: Library) -> None:
        self._staging, self._library = staging, library
        self._connection = staging.connection
        self._counts = counting(self._connection, library.id)

    def run(self, files: Iterable[SourceFile]) -> int:
        if self._connection.dialect.name == "postgresql":
            self._connection.exec_driver_sql("ANALYZE staged_rows")  # temporary tables have no statistics otherwise
            for setting in _BULK_SETTINGS:
                self._connection.exec_driver_sql(f"SET LOCAL {setting}")
        self._is_new = not self._has_samples()
        self._translated = self._stage_meanings()
        self._record_sources(files)
        added = self._add_samples()
        self._protect_splits()
        self._add_events()
        if self._staging.actors:
            self._add_words_of_actors()
        if self._connection.dialect.name == "postgresql" and added:
            # else every search would read through what waits for its place in the index
            self._connection.exec_driver_sql("SELECT gin_clean_pending_list('samples_bigrams')")
            self._connection.exec_driver_sql("ANALYZE samples")
            self._connection.exec_driver_sql("ANALYZE label_events")
        return added

    def _has_samples(self) -> bool:
        here = sa.select(samples.c.id).where(samples.c.library_id == self._library.id).limit(1)
        return self._connection.scalar(here) is not None

    def _unless(self, known: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
        """The condition that something is not `known`; of a new library, nothing is, and need not be looked for."""
        return sa.true() if self._is_new else ~known

    def _stage_meanings(self) -> bool:
        """Whether there are earlier label lists that mean something else today; they are staged then."""
        translate = load_translation(self._connection, self._library.id)
        if not translate.changes_labels:
            return False
        query = sa.select(label_events.c.labels, label_events.c.taxonomy_version).distinct()
        rows = [
            {"was": was, "version": version, "now": canonical_json(translate(was, version)).decode()}
            for was, version in self._connection.execute(query.where(label_events.c.library_id == self._library.id))
        ]
        changed = [row for row in rows if row["now"] != row["was"]]
        if changed:
            self._connection.execute(sa.insert(staged_meanings), changed)
        return bool(changed)

    def _means(self, labels: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
        """The condition that an event counts and means `labels` today."""
        literally = label_events.c.labels == labels
        if not self._translated:
            return literally & self._counts
        same = (staged_meanings.c.was == label_events.c.labels) & (
            staged_meanings.c.version == label_events.c.taxonomy_version
        )
        translated = sa.exists().where(same, staged_meanings.c.now == labels)
        return self._counts & (translated | (literally & ~sa.exists().where(same)))

    def _record_sources(self, files: Iterable[SourceFile]) -> None:
        for number, file in enumerate(files):
            same = (
                sources.c.library_id == self._library.id,
                sources.c.name == file.name,
                sources.c.sha256 == file.sha256,
            )
            source_id = self._connection.scalar(sa.select(sources.c.id).where(*same))
            if source_id is None:
                values = {
                    "library_id": self._library.id,
                    "name": file.name,
                    "sha256": file.sha256,
                    "imported_at": now(),
                }
                source_id = self._connection.execute(
                    sa.insert(sources).values(values).returning(sources.c.id)
                ).scalar_one()
            self._connection.execute(sa.insert(staged_files).values(file=number, source_id=source_id))

    def _add_samples(self) -> int:
        """Of the rows with the same text, the first gives the raw text and the place, all give the split."""
        position, split = sa.func.min(staged_rows.c.position), sa.func.min(staged_rows.c.split)
        known = sa.exists().where(samples.c.library_id == self._library.id, samples.c.id == staged_rows.c.id)
        first = sa.select(position, staged_rows.c.id, split).group_by(staged_rows.c.id).having(self._unless(known))
        columns = [*new_samples.c.keys()]
        self._connection.execute(sa.insert(new_samples).from_select(columns, first.order_by(position)))
        if self._connection.dialect.name == "postgresql":
            self._connection.exec_driver_sql("ANALYZE new_samples")
        rows = (
            sa.select(
                sa.literal(self._library.id),
                new_samples.c.id,
                staged_rows.c.text,
                staged_rows.c.pair,
                staged_rows.c.raw_text,
                staged_rows.c.raw_pair,
                staged_rows.c.duplicate_group,
                new_samples.c.split,
                staged_files.c.source_id,
                staged_rows.c.line,
            )
            .select_from(new_samples)
            .join(staged_rows, staged_rows.c.position == new_samples.c.position)
            .join(staged_files, staged_files.c.file == staged_rows.c.file)
            .order_by(new_samples.c.id)
        )
        insert = sa.insert(samples).from_select([*samples.c.keys()], rows)
        with self._search_index_at_the_end():
            return self._connection.execute(insert.execution_options(preserve_rowcount=True)).rowcount

    @contextmanager
    def _search_index_at_the_end(self) -> Iterator[None]:
        """On PostgreSQL, where next to all rows are new, index them in one go: a fifth of the time. Readers of samples
        wait meanwhile, so it is not done where there is much to read, or somebody reads for long.
        """
        definition = None
        if self._connection.dialect.name == "postgresql":
            before, new = (self._count(table) for table in (samples, new_samples))
            if new > max(WORTH_IT, before * MUCH_MORE) and self._keep_readers_out():
                definition = self._connection.scalar(sa.text(_SEARCH_INDEX))
                if definition is not None:
                    self._connection.exec_driver_sql("DROP INDEX samples_bigrams")
        yield
        if definition is not None:
            self._connection.exec_driver_sql(definition)

    def _keep_readers_out(self) -> bool:
        """Whether nobody else uses the samples now, nor can from now on.

        Who waited for long would make all readers wait, and two large imports at once would wait for each other.
        """
        try:
            with self._connection.begin_nested():
                self._connection.exec_driver_sql(f"SET LOCAL lock_timeout = {READERS_MS}")
                self._connection.exec_driver_sql("LOCK TABLE samples IN ACCESS EXCLUSIVE MODE")
                self._connection.exec_driver_sql("SET LOCAL lock_timeout TO DEFAULT")
        except sa.exc.OperationalError as error:
            if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise
            return False
        return True

    def _count(self, table: sa.Table) -> int:
        return self._connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()

    def _protect_splits(self) -> None:
        """A sample that comes again in another split moves to the one that protects more."""
        best = (
            sa.select(staged_rows.c.id, sa.func.min(staged_rows.c.split).label("split"))
            .where(staged_rows.c.split.is_not(None))
            .group_by(staged_rows.c.id)
            .subquery("best")
        )
        weaker = samples.c.imported_split.is_(None) | (samples.c.imported_split > best.c.split)
        self._connection.execute(
            sa.update(samples)
            .where(samples.c.library_id == self._library.id, samples.c.id == best.c.id, weaker)
            .values(imported_split=best.c.split)
        )

    def _add_events(self) -> None:
        """One event for each value that an import gives to a sample for the first time."""
        # asked only where it is not so of all rows
        nobody = [staged_rows.c.actor.is_(None)] if self._staging.actors else []
        first = (
            sa.select(staged_rows.c.id, staged_rows.c.labels, sa.func.min(staged_rows.c.position).label("position"))
            .where(staged_rows.c.labels.is_not(None), *nobody)
            .group_by(staged_rows.c.id, staged_rows.c.labels)
            .subquery("first")
        )
        known = sa.exists().where(
            label_events.c.library_id == self._library.id,
            label_events.c.sample_id == first.c.id,
            label_events.c.actor_kind == "import",
            self._means(first.c.labels),
        )
        rows = (
            sa.select(
                sa.literal(self._library.id),
                first.c.id,
                first.c.labels,
                sa.literal("import"),
                sa.literal(IMPORT_ACTOR),
                staged_files.c.source_id,
                staged_rows.c.line,
                sa.literal(now()),
                sa.literal(self._library.version),
                sa.null(),
            )
            .select_from(first)
            .join(staged_rows, staged_rows.c.position == first.c.position)
            .join(staged_files, staged_files.c.file == staged_rows.c.file)
            .where(self._unless(known))
            .order_by(first.c.id)
        )
        self._connection.execute(sa.insert(label_events).from_select(_EVENT_COLUMNS, rows))

    def _add_words_of_actors(self) -> None:
        """One event for each time that an actor gave a value; without a time, for the value."""
        said = [staged_rows.c[name] for name in ("id", "labels", "actor_kind", "actor", "said_at")]
        first = (
            sa.select(*said, sa.func.min(staged_rows.c.position).label("position"))
            .where(staged_rows.c.actor.is_not(None))
            .group_by(*said)
            .subquery("first")
        )
        known = sa.exists().where(
            label_events.c.library_id == self._library.id,
            label_events.c.sample_id == first.c.id,
            self._means(first.c.labels),
            label_events.c.actor_kind == first.c.actor_kind,
            label_events.c.actor == first.c.actor,
            first.c.said_at.is_(None) | (label_events.c.created_at == first.c.said_at),
        )
        created_at = sa.func.coalesce(first.c.said_at, now())
        rows = (
            sa.select(
                sa.literal(self._library.id),
                first.c.id,
                first.c.labels,
                first.c.actor_kind,
                first.c.actor,
                staged_files.c.source_id,
                staged_rows.c.line,
                created_at,
                sa.literal(self._library.version),
                staged_rows.c.confidence,
            )
            .select_from(first)
            .join(staged_rows, staged_rows.c.position == first.c.position)
            .join(staged_files, staged_files.c.file == staged_rows.c.file)
            .where(self._unless(known))
            .order_by(first.c.id, created_at, first.c.position)  # the newest word comes last
        )
        self._connection.execute(sa.insert(label_events).from_select(_EVENT_COLUMNS, rows))
