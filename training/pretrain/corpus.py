"""A corpus: text files and snapshots, read as documents of paragraphs, in flat memory.

A line is a paragraph and a blank line ends a document, as in the corpora of BERT. A file without blank lines
is taken as what most such files are (`Layout.AUTO`): where its lines are no full sentences (titles, queries), or each
is long enough to be a text of its own, a line is a document; otherwise it is running text, a novel say, and becomes
documents of about 10,000 characters. `Layout` says it outright where the guess is wrong: for a novel with a blank line
between all paragraphs, say.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from model.console import say
from model.errors import BadInput
from model.files import sha256_file
from model.snapshot import Snapshot, open_snapshot
from model.text import Normaliser
from model.types import Split
from training.pretrain.text_files import lines

LONGEST_DOCUMENT = 100_000  # characters; a longer one goes on as another, so that memory stays flat
LONGEST_PASSAGE = 10_000  # characters of a document of running text
_LOOK = 5_000  # lines that show how a file is laid out, or
_LOOK_CHARACTERS = 1_000_000  # of them, where lines are long
_LONG_LINE = 300  # characters: in a file of such lines each holds a whole text
_ENDS = "。！？；…!?.;：”’」』）)\"'"


class Layout(StrEnum):
    """How a text file says where a document ends."""

    AUTO = "auto"
    BLANK_LINES = "blank-lines"
    LINES = "lines"  # each line is a document
    RUNNING = "running"  # one text, whatever lines are blank: passages of about `LONGEST_PASSAGE` characters


@dataclass(frozen=True, slots=True)
class Source:
    """A file or a snapshot of a corpus. bytes: on the disk. sha256: of the file, or the snapshot's hash."""

    path: Path
    bytes: int
    sha256: str
    layout: Layout | None
    snapshot: Snapshot | None = None

    def to_json(self) -> dict[str, Any]:
        """What a manifest says of it; a corpus that was moved is still the same."""
        kind = "snapshot" if self.snapshot else "text"
        return {
            "kind": kind,
            "name": self.path.name,
            "bytes": self.bytes,
            "sha256": self.sha256,
            "layout": self.layout.value if self.layout else None,
        }


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents of several sources, one source after the other."""

    sources: tuple[Source, ...]
    normaliser: Normaliser

    @classmethod
    def open(
        cls, paths: Sequence[Path], *, normaliser: Normaliser | None = None, layout: Layout = Layout.AUTO
    ) -> "Corpus":
        """The corpus in `paths`: text files (plain, .xz, .gz) and folders of snapshots, of which train alone is read.

        Raises:
            BadInput: a path is missing, named twice, empty or not what a corpus is made of.
            BadSnapshot: a snapshot has been changed.
        """
        if not paths:
            raise BadInput("the corpus has no files; name some with --corpus")
        if len({path.resolve() for path in paths}) < len(paths):
            raise BadInput("a file of the corpus is named twice; name each once")
        return cls(tuple(_source(path, layout) for path in paths), normaliser or Normaliser())

    @property
    def bytes(self) -> int:
        """What the sources take on the disk: the total that `documents` advances to."""
        return sum(source.bytes for source in self.sources)

    def documents(self, advance: Callable[[float], None] | None = None) -> Iterator[list[str]]:
        """The documents: each a list of its normalised paragraphs, none of them empty.

        `advance` is told how many more bytes of the sources have been read.

        Raises:
            BadInput: a file can't be read as text; see `text_files.lines`.
        """
        for source in self.sources:
            found = _of_snapshot(source, advance) if source.snapshot else _of_file(source, advance)
            for document in found:
                if paragraphs := [normal for paragraph in document if (normal := self.normaliser(paragraph))]:
                    yield paragraphs

    def to_json(self) -> dict[str, Any]:
        """What makes this corpus this corpus, for manifests."""
        return {"sources": [source.to_json() for source in self.sources], "normaliser": self.normaliser.to_json()}


def _source(path: Path, layout: Layout) -> Source:
    if (path / "manifest.json").exists():
        snapshot = open_snapshot(path)
        size = (path / "samples.parquet").stat().st_size
        return Source(path=path, bytes=size, sha256=snapshot.hash, layout=None, snapshot=snapshot)
    if path.is_dir():
        raise BadInput(f"{path} is a folder without a snapshot; name text files, or a snapshot's folder")
    if not path.is_file():
        raise BadInput(f"{path} of the corpus is not there; check the name")
    if layout is Layout.AUTO:
        layout = _layout(path)
    elif next(lines(path), None) is None:
        raise BadInput(f"{path} of the corpus is empty; leave it out")
    return Source(path=path, bytes=path.stat().st_size, sha256=sha256_file(path), layout=layout)


def _layout(path: Path) -> Layout:
    """How `path` is laid out, by its first lines."""
    head, size = list[str](), 0
    for line in islice(lines(path), _LOOK):
        head.append(line.strip())
        size += len(line)
        if size > _LOOK_CHARACTERS:
            break
    filled = [line for line in head if line]
    if not filled:
        raise BadInput(f"{path} of the corpus is empty, or blank at least for {len(head):,} lines; leave it out")
    inner = head[: len(head) - next(i for i, line in enumerate(reversed(head)) if line)]
    if "" in inner[inner.index(filled[0]) :]:
        return Layout.BLANK_LINES
    ended = sum(line[-1] in _ENDS for line in filled) / len(filled)
    running = ended > 0.5 and median(map(len, filled)) <= _LONG_LINE
    layout = Layout.RUNNING if running or len(filled) == 1 else Layout.LINES
    what = "连续的文章 | running text" if layout is Layout.RUNNING else "一行一篇 | a document a line"
    say(f"{path} 没有空行 has no blank lines: {what}; --documents 可以指定 tells otherwise")
    return layout


def _of_file(source: Source, advance: Callable[[float], None] | None) -> Iterator[list[str]]:
    longest = LONGEST_PASSAGE if source.layout is Layout.RUNNING else LONGEST_DOCUMENT
    document: list[str] = []
    size = 0
    for line in lines(source.path, advance):
        blank = not line or line.isspace()
        ends = source.layout is Layout.LINES or (blank and source.layout is not Layout.RUNNING)
        if document and (ends or size + len(line) > longest):
            yield document
            document, size = [], 0
        if not blank:
            document.append(line)
            size += len(line)
    if document:
        yield document


def _of_snapshot(source: Source, advance: Callable[[float], None] | None) -> Iterator[list[str]]:
    assert source.snapshot  # noqa: S101  for the type checker; `documents` asks for nothing else
    share = source.bytes / max(source.snapshot.counts["total"], 1)
    for sample in source.snapshot.samples():
        if advance:
            advance(share)
        if sample.split is Split.TRAIN:
            yield [sample.text] if sample.pair is None else [sample.text, sample.pair]
