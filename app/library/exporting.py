"""Export a snapshot in a format that other tools read; it appears whole under its name, or not at all."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from app.library.exports.arrow import write_hugging_face, write_parquet
from app.library.exports.content import Content, to_json
from app.library.exports.label_studio import write_label_studio
from app.library.exports.lines import write_doccano, write_fasttext, write_jsonl
from app.library.exports.sheets import write_csv, write_xlsx
from model.errors import BadInput
from model.files import publish, staging_folder
from model.snapshot import Snapshot
from model.types import Split, Taxonomy


class ExportFormat(StrEnum):
    """What a snapshot can be exported as: a file, or a folder for `hf`."""

    JSONL = "jsonl"
    CSV = "csv"
    XLSX = "xlsx"
    PARQUET = "parquet"
    FASTTEXT = "fasttext"
    LABEL_STUDIO = "label-studio"
    DOCCANO = "doccano"
    HF = "hf"


_WRITERS: dict[ExportFormat, Callable[[Content, Path], None]] = {
    ExportFormat.JSONL: write_jsonl,
    ExportFormat.CSV: write_csv,
    ExportFormat.XLSX: write_xlsx,
    ExportFormat.PARQUET: write_parquet,
    ExportFormat.FASTTEXT: write_fasttext,
    ExportFormat.LABEL_STUDIO: write_label_studio,
    ExportFormat.DOCCANO: write_doccano,
    ExportFormat.HF: write_hugging_face,
}
# The formats in which one cell holds all labels of a text.
_ONE_CELL = (ExportFormat.CSV, ExportFormat.XLSX)


@dataclass(frozen=True, slots=True)
class Exported:
    """`label_sep`: what parts several labels in a cell of CSV and Excel."""

    path: Path
    samples: int
    label_sep: str | None


def export_snapshot(
    snapshot: Snapshot,
    *,
    file_format: ExportFormat,
    out: Path,
    split: Split | None = None,
    on_sample: Callable[[int], None] = lambda _: None,
) -> Exported:
    """Write `snapshot`, or one split of it, to `out`, in flat memory.

    Raises:
        BadInput: `out` exists, there is nothing to write, or the format can't hold it. Nothing is written then.
    """
    content = Content(snapshot, split, on_sample)
    if not content.total:
        raise BadInput(f"snapshot {snapshot.hash} has no sample in split {split}; leave out --split or take another")
    _write(out, lambda path: _WRITERS[file_format](content, path))
    return Exported(path=out, samples=content.total, label_sep=content.label_sep if file_format in _ONE_CELL else None)


def export_label_names(taxonomy: Taxonomy, out: Path) -> None:
    """Write the classes to `out` in their order, a JSON object each, as `import --label-names` reads them.

    Raises:
        BadInput: `out` exists.
    """
    names = "".join(to_json({"id": number, "label": label}) + "\n" for number, label in enumerate(taxonomy.labels))
    _write(out, lambda path: path.write_text(names, encoding="utf-8"))


def refuse_existing(out: Path) -> None:
    """Stop before anything is written over.

    Raises:
        BadInput: `out` exists.
    """
    if out.exists():
        raise BadInput(f"{out} exists already; give another name or remove it first")


def _write(out: Path, write: Callable[[Path], object]) -> None:
    refuse_existing(out)
    with staging_folder(out) as staging:
        partial = staging / out.name
        write(partial)
        refuse_existing(out)  # made by somebody else meanwhile; a file would be replaced
        publish(partial, out)
