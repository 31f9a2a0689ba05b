"""Rows of files, checked and normalised, ready to be staged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app.library.annotations import Said
from app.library.cells import LabelReader, actor_name, cell_confidence, cell_split, cell_text
from app.library.definition import Proposer
from app.library.readers import Row
from app.library.splits import SPLITS, duplicate_group, named_split
from app.library.tables import Table
from app.store.staging import StagedRow
from model.errors import BadInput, BadText
from model.text import Normaliser, check_text, sample_id
from model.types import preview


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns hold what; None leaves text and label to the format.

    split: a column, or the split that all rows are in. confidence: how sure the labels are, 0 to 1.
    """

    text: str | None = None
    label: str | None = None
    pair: str | None = None
    split: str | None = None
    confidence: str | None = None


class RowReader:
    """Turns the rows of one table into rows to stage, by the columns that were asked for.

    file: its number in this import.

    Raises:
        BadInput: the table lacks one of the columns.
    """

    def __init__(
        self,
        table: Table,
        file: int,
        columns: Columns,
        normaliser: Normaliser,
        labels: LabelReader,
        proposer: Proposer | None = None,
    ) -> None:
        self.table, self._proposer = table, proposer
        self._file, self._columns, self._normaliser, self._labels = file, columns, normaliser, labels
        text = columns.text if columns.text is not None else table.text
        if text is None:
            raise BadInput(
                f"--text is missing: {table.name} has {_columns(table)}; name the one that holds the texts, or look at "
                "the guesses of --dry-run"
            )
        self._text_column, self._text = text, table.key(text)
        self._pair = table.key(columns.pair) if columns.pair is not None else None
        label = columns.label if columns.label is not None else table.label
        self._label = table.key(label) if label is not None else None
        split = named_split(columns.split) if columns.split is not None else None
        self._all_in = SPLITS.index(split) if split else None
        self._split = table.key(columns.split) if columns.split is not None and not split else None
        self._confidence = table.key(columns.confidence) if columns.confidence is not None else None
        if proposer and (self._label is None or table.said):
            raise BadInput(f"{table.name}: what {proposer.name} proposes must be in a column; name it with --label")
        if columns.confidence is not None and not proposer:
            raise BadInput("--confidence goes with --proposed-by: labels that are imported count as they are")

    def __call__(self, row: Row) -> list[StagedRow]:
        """The rows to stage: one, or where several annotators labelled the text, one for each.

        Raises:
            BadInput: a cell is missing or can't be used.
        """
        line, cells = row
        text, raw_text = self._normal(cells, self._text, self._text_column)
        pair, raw_pair = None, None
        if self._pair is not None:
            pair, raw_pair = self._normal(cells, self._pair, str(self._columns.pair))
        split = self._all_in if self._split is None else cell_split(_cell(cells, self._split))
        identity = sample_id(text, pair)
        staged = StagedRow(
            id=identity,
            text=text,
            pair=pair,
            raw_text=raw_text,
            raw_pair=raw_pair,
            duplicate_group=duplicate_group(identity, text, pair),
            split=split,
            # read last: the labels of a row that is rejected must not enter the taxonomy
            labels=None if self._label is None or self.table.said else self._labels(_cell(cells, self._label)),
            file=self._file,
            line=line,
        )
        if self._proposer:
            sure = None if self._confidence is None else cell_confidence(_cell(cells, self._confidence))
            kind, name = self._proposer
            return [staged._replace(actor=name, actor_kind=kind, confidence=sure)]
        if self.table.said is None or self._label is None:
            return [staged]
        return self._annotated(staged, self.table.said(cells, _cell(cells, self._label)))

    def _annotated(self, staged: StagedRow, said: Sequence[Said]) -> list[StagedRow]:
        """What each annotator said of the text; the text alone when nobody has labelled it yet."""
        actors = [word.actor and actor_name(word.actor) for word in said]
        labels = self._labels.several([word.labels for word in said])
        return [
            staged._replace(labels=given, actor=actor, said_at=word.at)
            for word, actor, given in zip(said, actors, labels, strict=True)
        ] or [staged]

    def _normal(self, cells: Any, key: int | str, column: str) -> tuple[str, str | None]:
        raw = cell_text(_cell(cells, key))
        try:
            raw.encode()
        except UnicodeEncodeError as error:  # told here, for the normaliser may drop the tag that it stands in
            undecoded = "\udc80" <= raw[error.start] <= "\udcff"
            what = f"bytes that are not {self.table.encoding}" if undecoded else "half of a surrogate pair"
            raise BadText(f"column {column}, character {error.start + 1}: {what}") from None
        text = check_text(self._normaliser(raw), where=f"column {column}")
        # PostgreSQL stores no NUL
        return text, None if raw == text else raw.replace("\x00", "\ufffd")


def readers(
    tables: Sequence[Table],
    *,
    first: int,
    columns: Columns,
    normaliser: Normaliser,
    labels: LabelReader,
    proposer: Proposer | None = None,
    on_skipped: Callable[[str], None],
) -> list[RowReader]:
    """A reader for each table that has the columns, numbered from `first`; `on_skipped` hears of the others.

    Raises:
        BadInput: none has them.
    """
    found: list[RowReader] = []
    refused: dict[str, BadInput] = {}
    for table in tables:
        try:
            found.append(RowReader(table, first + len(found), columns, normaliser, labels, proposer))
        except BadInput as error:
            refused[table.name] = error
    if not found:
        raise next(iter(refused.values()))
    for name in refused:
        on_skipped(name)
    return found


def _columns(table: Table) -> str:
    names = table.columns or tuple(str(number) for number in range(table.width))
    return f"the columns {preview(names, 20)}"


def _cell(cells: Any, key: int | str) -> Any:
    try:
        return cells[key]
    except KeyError:
        raise BadInput(f"there is no {key!r} in this row") from None
