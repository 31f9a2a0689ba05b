"""Exports of labelling tools: Label Studio (JSON and JSON-MIN) and doccano (JSON lines), with who labelled, and when.

Where an export names the annotator, each annotation becomes a word of that person; else it counts as imported.
Skipped annotations and the predictions of models are left out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from app.library.formats import Format
from app.library.readers import Broken, Row
from model.errors import BadInput

LABEL_STUDIO, DOCCANO = "Label Studio", "doccano"
CLOCKS_DIFFER = timedelta(days=1)  # a time without its zone may be of any
_BUILT_OTHERWISE = (BadInput, AttributeError, TypeError, KeyError)  # than the tool builds them
_Flat = Callable[[Mapping[str, Any]], dict[str, Any]]


class Said(NamedTuple):
    """What one annotator said of a text. `at`: ISO 8601 in UTC."""

    labels: list[Any]
    actor: str | None
    at: str | None


@dataclass(frozen=True, slots=True)
class Export:
    """How to read the objects of an export.

    flat: an object as the cells of a row. said: a row's cells and its cell of the label column → what annotators said.
    text, label: the columns, where the tool names them.
    """

    format: Format
    flat: _Flat
    said: Callable[[Mapping[str, Any], Any], Sequence[Said]]
    text: str | None = None
    label: str | None = None


def find_export(objects: Sequence[Mapping[str, Any]], *, asked: Format, member: str | None) -> Export | None:
    """The tool whose export begins with `objects`, if any; `member`: the file's name in its archive.

    Raises:
        BadInput: an export was asked for, and this is none.
    """
    if asked not in (Format.AUTO, Format.LABEL_STUDIO, Format.DOCCANO) or not objects:
        return None
    names = {name for item in objects for name in item}
    if asked is not Format.DOCCANO:
        if all(isinstance(item.get("data"), dict) for item in objects) and names & {"annotations", "completions"}:
            return _label_studio(objects)
        if {"annotation_id", "annotator"} <= names:
            return Export(Format.LABEL_STUDIO, dict, _said_min)
    if asked is Format.LABEL_STUDIO:
        raise BadInput(
            "this is no export of Label Studio: its objects have neither data and annotations (JSON) nor annotation_id "
            "and annotator (JSON-MIN)"
        )
    marks = {"Comments", "annotation_approver", "annotations"}
    if asked is Format.DOCCANO or ({"id", "text"} <= names and names & marks):
        return _doccano(objects, member)
    return None


def column_names(export: Export, objects: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The columns of an export that begins with `objects`."""
    return tuple(dict.fromkeys(str(name) for item in objects for name in _flattened(export.flat, item)))


def export_rows(rows: Iterator[Row | Broken], export: Export, columns: Sequence[str]) -> Iterator[Row | Broken]:
    """The rows of an export with the cells that `export` makes of them; what a text lacks of `columns` is None."""
    empty = dict.fromkeys(columns)
    for row in rows:
        if isinstance(row, Broken) or not isinstance(row.cells, Mapping):
            yield row
            continue
        try:
            yield Row(row.line, empty | export.flat(row.cells))
        except _BUILT_OTHERWISE as error:
            yield Broken(row.line, f"no annotation as the tool writes it: {error}", str(row.cells))


def _label_studio(objects: Sequence[Mapping[str, Any]]) -> Export:
    """A task an object: its data, and for each control of the labelling form what every annotator chose."""
    controls = sorted(
        {name for item in objects for name, cell in _flattened(_task, item).items() if type(cell) is tuple}
    )

    def said(_: Mapping[str, Any], cell: Any) -> Sequence[Said]:
        if cell is not None and not isinstance(cell, tuple):
            raise BadInput(f"the label column holds no annotations; those that do: {', '.join(controls) or 'none'}")
        return cell or ()

    return Export(Format.LABEL_STUDIO, _task, said, label=controls[0] if len(controls) == 1 else None)


def _task(item: Mapping[str, Any]) -> dict[str, Any]:
    chosen: dict[str, list[Said]] = {}
    for annotation in item.get("annotations") or item.get("completions") or ():
        if annotation.get("was_cancelled"):
            continue
        actor = _person(annotation.get("completed_by"), LABEL_STUDIO)
        at = _time(annotation.get("updated_at") or annotation.get("created_at"))
        labels: dict[str, list[Any]] = {}
        for result in annotation.get("result") or ():
            if result.get("type") in ("choices", "taxonomy"):
                labels.setdefault(result["from_name"], []).extend(_choices(result["value"]))
        for control, names in labels.items():
            chosen.setdefault(control, []).append(Said(names, actor, at))
    return {**item["data"], **{control: tuple(said) for control, said in chosen.items()}}


def _flattened(flat: _Flat, item: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return flat(item)
    except _BUILT_OTHERWISE:
        return {}


def _said_min(cells: Mapping[str, Any], cell: Any) -> Sequence[Said]:
    labels = _choices(cell)
    at = _time(cells.get("updated_at") or cells.get("created_at"))
    return [Said(labels, _person(cells.get("annotator"), LABEL_STUDIO), at)] if labels else []


def _choices(value: Any) -> list[Any]:
    """The labels in a value of Label Studio: names, or, of a taxonomy, lists of levels."""
    if isinstance(value, Mapping):
        value = value.get("choices", value.get("taxonomy"))
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def _doccano(objects: Sequence[Mapping[str, Any]], member: str | None) -> Export:
    """A text an object. Where annotators don't share labels, doccano writes a file for each, under their name."""
    stem = PurePosixPath(member).stem if member else None
    owner = None if stem in ("all", "unknown") else stem
    names = {name for item in objects for name in item}
    label = next((name for name in ("label", "labels", "annotations") if name in names), None)

    def said(cells: Mapping[str, Any], cell: Any) -> Sequence[Said]:
        if isinstance(cell, list) and any(isinstance(part, Mapping) for part in cell):
            return _by_person(cell)
        labels = _choices(cell)
        actor = owner or _person(cells.get("annotation_approver"), DOCCANO)
        return [Said(labels, actor, None)] if labels else []

    return Export(Format.DOCCANO, dict, said, text="text" if "text" in names else None, label=label)


def _by_person(annotations: Sequence[Any]) -> Sequence[Said]:
    """Old exports of doccano: one annotation a label, with the number of its user."""
    words: dict[str | None, tuple[list[Any], list[str]]] = {}
    for annotation in annotations:
        labels, times = words.setdefault(_person(annotation.get("user"), DOCCANO), ([], []))
        labels.append(annotation["label"])
        if at := _time(annotation.get("updated_at") or annotation.get("created_at")):
            times.append(at)
    return [Said(labels, actor, max(times, default=None)) for actor, (labels, times) in words.items()]


def _person(who: Any, tool: str) -> str | None:
    """The name of an annotator; one that has only a number is called by it and the tool."""
    if isinstance(who, Mapping):
        name = " ".join(str(who[part]) for part in ("first_name", "last_name") if who.get(part))
        who = who.get("email") or who.get("username") or name or who.get("id")
    if who is None or who == "":
        return None
    return f"{tool} {who}" if isinstance(who, int) else str(who)


def _time(value: Any) -> str | None:
    if not value:
        return None
    try:
        time = datetime.fromisoformat(str(value))
        utc = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter at the ends of the calendar, in another zone
        raise BadInput(f"{str(value)[:40]!r} is no time") from None
    if utc > datetime.now(UTC) + CLOCKS_DIFFER:
        raise BadInput(f"{str(value)[:40]!r} is yet to come, and nobody could say anything newer until then")
    return utc.isoformat(timespec="seconds")
