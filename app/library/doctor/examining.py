"""Examine a library: take its census, look at everything, and say what was found."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from app.library.cataloguing import ensure_catalogue
from app.library.doctor.census import UNLABELLED, Census, CountTokens, take_census
from app.library.doctor.classes import examine_balance, examine_sparse_classes
from app.library.doctor.disagreement import examine_conflicts
from app.library.doctor.findings import Finding
from app.library.doctor.judging import Judged, read_judged
from app.library.doctor.leakage import examine_leakage
from app.library.doctor.lengths import Limit, examine_lengths
from app.library.doctor.measures import Measures
from app.library.doctor.outliers import examine_outliers
from app.library.doctor.predicted import predicted_findings
from app.library.doctor.repetition import examine_duplicates
from app.library.doctor.scripts import examine_scripts
from app.library.recorded import find_record, open_recorded
from app.library.splits import SPLITS, UNPROTECTED
from app.store.database import connect, reading
from app.store.integrity import count_samples
from app.store.libraries import get_library
from app.store.snapshots import recorded_snapshots
from app.store.texts import SampleText, texts_of
from model.bundle import open_bundle
from model.errors import BadInput, BadSnapshot
from model.near import NearSettings
from model.provenance import now
from model.run import Run
from model.snapshot import Snapshot
from model.text import MAX_TEXT_CHARS
from model.tokenization import load_tokenizer
from model.types import IntArray, Text

MAX_LENGTH = 128  # tokens; what wenlei train cuts texts to
UNCUT = 8 * MAX_TEXT_CHARS  # tokens that no text has


@dataclass(frozen=True, slots=True)
class Questions:
    """How to examine a library.

    max_length: tokens that a model reads; bundle: one that says how many, and counts them exactly. snapshot: its hash,
    or the beginning, whose splits are looked at too. run: a training by folds, whose predictions judge the labels.

    Raises:
        BadInput: the length can't be one, or the similarity.
    """

    near: float = NearSettings().threshold
    max_length: int = MAX_LENGTH
    bundle: Path | None = None
    snapshot: str | None = None
    run: Path | None = None

    def __post_init__(self) -> None:
        if not 0.5 <= self.near <= 1:  # as NearSettings, under the name that the option has here
            raise BadInput(f"--near {self.near:g}: give a similarity from 0.5 to 1")
        if self.max_length < 1:
            raise BadInput(f"--max-length {self.max_length}: give a number of tokens from 1 up")


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found in a library, at a time.

    samples, labelled, by_person: how many there are, how many of them with labels, how many with a person's.
    version: of the taxonomy. max_length: what the bundle says, if there was one. snapshot: its hash. judged: by which
    predictions the labels were judged, if by any. texts: of the findings' examples.
    """

    library: str
    at: str
    version: int
    samples: int
    labelled: int
    by_person: int
    questions: Questions
    max_length: int
    snapshot: str | None
    census: Census
    judged: Judged | None
    findings: tuple[Finding, ...]
    texts: dict[str, SampleText]


def examine(
    engine: sa.Engine, *, library: str, questions: Questions, on_samples: Callable[[int], None] = lambda _: None
) -> Examination:
    """Look at everything; at the labels by predictions, where there is a run.

    `on_samples` hears of samples that were read, each twice.

    Raises:
        UnknownLibrary: there is no such library. BadInput: it is empty, or the bundle's model cuts no text.
        BadSnapshot: there is no such snapshot, it is of another library, or not what it was. BadBundle: as open_bundle.
        BadRun: as `read_judged`.
    """
    if questions.run is not None:
        Run.open(questions.run)  # rather now than after minutes
    ensure_catalogue(engine, library)
    limit, count_tokens = _limit(questions)
    snapshot = _snapshot(engine, library, questions.snapshot)
    with connect(engine) as connection, reading(connection):
        source = get_library(connection, library)
        if not count_samples(connection, source.id):
            raise BadInput(f"library {library!r} has no samples; fill it with wenlei library import")
        census, measures = take_census(
            connection, source, NearSettings(questions.near), on_samples, count_tokens=count_tokens
        )
        judged = None
        if questions.run is not None:
            known = {record.hash for record in recorded_snapshots(connection, library)}
            judged = read_judged(questions.run, census, known)
        findings = tuple(_findings(census, measures, limit, snapshot, judged))
        shown = dict.fromkeys(example.sample_id for finding in findings for example in finding.examples)
        texts = texts_of(connection, source.id, list(shown))
    return Examination(
        library=library,
        at=now(),
        version=source.version,
        samples=len(census),
        labelled=int(np.count_nonzero(census.codes != UNLABELLED)),
        by_person=int(np.count_nonzero(census.by_person)),
        questions=questions,
        max_length=limit.tokens,
        snapshot=snapshot.hash if snapshot else None,
        census=census,
        judged=judged,
        findings=findings,
        texts=texts,
    )


def _findings(
    census: Census, measures: Measures, limit: Limit, snapshot: Snapshot | None, judged: Judged | None
) -> Iterator[Finding]:
    yield examine_duplicates(census)
    if snapshot is None:
        yield examine_leakage(census)
    else:
        yield examine_leakage(census, snapshot.hash, _splits_of(census, snapshot))
    yield examine_conflicts(census)
    yield examine_sparse_classes(census)
    yield examine_balance(census)
    yield examine_lengths(census, measures, limit, snapshot.path if snapshot else None)
    yield examine_scripts(census, measures)
    yield examine_outliers(census, measures)
    if judged is not None:
        yield from predicted_findings(census, judged.run, judged.predictions)


def _limit(questions: Questions) -> tuple[Limit, CountTokens | None]:
    """What the model reads, and who counts its tokens."""
    if questions.bundle is None:
        return Limit(questions.max_length), None
    bundle = open_bundle(questions.bundle)
    if not bundle.manifest.max_length:
        raise BadInput(f"{bundle.path}: its model, {bundle.manifest.arch}, cuts no text; leave --bundle out")
    tokenizer = load_tokenizer(bundle.path, max_length=UNCUT)

    def count(texts: Sequence[Text]) -> list[int]:
        return [encoded.length for encoded in tokenizer.encode(texts)]

    return Limit(bundle.manifest.max_length, bundle.manifest.name), count


def _snapshot(engine: sa.Engine, library: str, start: str | None) -> Snapshot | None:
    if start is None:
        return None
    record = find_record(engine, start)
    if record.library != library:
        raise BadSnapshot(
            f"snapshot {record.hash} was frozen from library {record.library!r}, not {library!r}; see wenlei library "
            f"snapshots --library {library}"
        )
    return open_recorded(record)


def _splits_of(census: Census, snapshot: Snapshot) -> IntArray:
    """(n,), the position in `Split` of each sample of the census, `UNPROTECTED` where the snapshot lacks it."""
    splits = np.full(len(census), UNPROTECTED)
    row = 0
    for sample in snapshot.samples():  # sorted by id, as the census
        while row < len(census) and census.ids[row] < sample.id:
            row += 1
        if row < len(census) and census.ids[row] == sample.id:
            splits[row] = SPLITS.index(sample.split)
    return splits
