"""The census: all samples of a library side by side, as the doctor's examinations read them."""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from app.library.doctor.measures import Measures, joined, scripts_of
from app.library.doctor.surprisal import BigramModel
from app.library.labels import standing
from app.library.splits import UNPROTECTED
from app.store.events import events_of_samples
from app.store.examined import ExaminedSample, examined_samples, read_labels, unlabelled_but_spoken_of
from app.store.libraries import Library
from app.store.texts import SampleText, texts_by_id
from model.metrics import BoolArray
from model.near import NearDuplicates, NearSettings, near_groups
from model.types import IntArray, Text

UNLABELLED = -1
ROWS_AT_ONCE = 2048
# The bigrams that texts are judged by are counted in so many of the first, in the order of their ids, which is none:
# more would tell hardly more.
TEXTS_READ = 100_000
CHARACTERS_READ = 16_000_000

OnSamples = Callable[[int], None]
CountTokens = Callable[[Sequence[Text]], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Census:
    """n samples, sorted by id.

    codes: (n,), the position in `label_lists` of each sample's current labels, or `UNLABELLED`. by_person: (n,), if a
    person's word about it stands. conflict: (n,). imported_splits: (n,), positions in `model.types.Split`, or
    `app.library.splits.UNPROTECTED`. near: their near duplicates.
    """

    library: Library
    ids: list[str]
    label_lists: list[tuple[str, ...]]
    codes: IntArray
    by_person: BoolArray
    conflict: BoolArray
    imported_splits: IntArray
    near: NearDuplicates

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def name(self) -> str:
        """Of the library."""
        return self.library.definition.name

    def labels(self, row: int) -> tuple[str, ...] | None:
        """The current labels of sample number `row`, None without any."""
        code = self.codes[row]
        return None if code == UNLABELLED else self.label_lists[code]


class Taken(NamedTuple):
    """A census, and its texts in figures."""

    census: Census
    measures: Measures


def take_census(
    connection: sa.Connection,
    library: Library,
    settings: NearSettings,
    on_samples: OnSamples = lambda _: None,
    *,
    count_tokens: CountTokens | None = None,
) -> Taken:
    """Read the library, each text twice, in the memory that `near_groups` takes and about 200 bytes a sample.

    The catalogue has to be fresh. `on_samples` hears of samples that have been read. count_tokens: how many tokens a
    model makes of texts, where that is to be known exactly.
    """
    first = _FirstReading(on_samples)
    near = near_groups(first.texts(examined_samples(connection, library.id)), settings)
    by_person = np.frombuffer(first.by_person, np.int8).astype(np.bool_)
    spoken_of = unlabelled_but_spoken_of(connection, library.id)
    for start in range(0, len(spoken_of), ROWS_AT_ONCE):
        for sample in events_of_samples(connection, library.id, spoken_of[start : start + ROWS_AT_ONCE]):
            person_spoke = any(event.actor_kind == "person" for event in standing(sample.events))
            by_person[bisect_left(first.ids, sample.id)] = person_spoke
    second = _SecondReading(near.groups, count_tokens, on_samples)
    second.read(texts_by_id(connection, library.id))
    census = Census(
        library=library,
        ids=first.ids,
        label_lists=[read_labels(labels) for labels in first.codes_of],
        codes=np.frombuffer(first.codes, np.int32).astype(np.int64),
        by_person=by_person,
        conflict=np.frombuffer(first.conflict, np.int8).astype(np.bool_),
        imported_splits=np.frombuffer(first.splits, np.int8).astype(np.int64),
        near=near,
    )
    measures = Measures(
        lengths=np.concatenate([np.empty(0, np.int64), *first.lengths]),
        scripts=np.concatenate([scripts_of([]), *first.scripts]),
        surprisal=np.concatenate([np.empty(0, np.float32), *second.surprisal]),
        tokens=np.concatenate([np.empty(0, np.int64), *second.tokens]) if count_tokens else None,
    )
    return Taken(census, measures)


class _FirstReading:
    """What one walk through the library tells, while near duplicates are looked for."""

    def __init__(self, on_samples: OnSamples) -> None:
        self._on_samples = on_samples
        self.ids: list[str] = []
        self.codes_of: dict[str, int] = {}
        self.codes, self.splits = array("i"), array("b")
        self.by_person, self.conflict = array("b"), array("b")
        self.lengths: list[IntArray] = []
        self.scripts: list[np.ndarray] = []

    def texts(self, samples: Iterator[ExaminedSample]) -> Iterator[tuple[str, str | None]]:
        """The texts, on their way to whoever compares them."""
        some: list[str] = []
        for sample in samples:
            labels = sample.labels
            self.ids.append(sample.id)
            self.codes.append(UNLABELLED if labels is None else self.codes_of.setdefault(labels, len(self.codes_of)))
            self.splits.append(UNPROTECTED if sample.imported_split is None else sample.imported_split)
            self.by_person.append(sample.by_person)
            self.conflict.append(sample.conflict)
            some.append(joined(Text(sample.text, sample.pair)))
            if len(some) == ROWS_AT_ONCE:
                self._measure(some)
                some = []
            yield sample.text, sample.pair
        self._measure(some)

    def _measure(self, texts: list[str]) -> None:
        self.lengths.append(np.array([len(text) for text in texts], dtype=np.int64))
        self.scripts.append(scripts_of(texts))
        self._on_samples(len(texts))


class _SecondReading:
    """How surprising every text is, once it is known which are near duplicates. groups: (n,), of `NearDuplicates`."""

    def __init__(self, groups: IntArray, count_tokens: CountTokens | None, on_samples: OnSamples) -> None:
        self._groups, self._count_tokens, self._on_samples = groups, count_tokens, on_samples
        self._model = BigramModel()
        self.surprisal: list[np.ndarray] = []
        self.tokens: list[IntArray] = []

    def read(self, samples: Iterator[SampleText]) -> None:
        """Read some texts first, and then judge all."""
        chunks = _chunks(samples)
        waiting: list[list[Text]] = []
        texts = characters = 0
        for chunk in chunks:
            waiting.append(chunk)
            heads = self._groups[texts : texts + len(chunk)] == np.arange(texts, texts + len(chunk))
            self._model.read([joined(text) for text, is_head in zip(chunk, heads, strict=True) if is_head])
            texts += len(chunk)
            characters += sum(len(joined(text)) for text in chunk)
            if texts >= TEXTS_READ or characters >= CHARACTERS_READ:
                break
        judged = 0
        waiting.reverse()
        while waiting:
            judged += self._judge(waiting.pop(), judged, read=texts)
        for chunk in chunks:
            judged += self._judge(chunk, judged, read=texts)

    def _judge(self, texts: list[Text], start: int, *, read: int) -> int:
        """Judge texts from number `start` on, where those before number `read` were read."""
        is_known = self._groups[start : start + len(texts)] < read
        bits = self._model.surprisal([joined(text) for text in texts], is_known)
        self.surprisal.append(bits.astype(np.float32))
        if self._count_tokens:
            self.tokens.append(np.array(self._count_tokens(texts), dtype=np.int64))
        self._on_samples(len(texts))
        return len(texts)


def _chunks(samples: Iterator[SampleText]) -> Iterator[list[Text]]:
    chunk: list[Text] = []
    for sample in samples:
        chunk.append(Text(sample.text, sample.pair))
        if len(chunk) == ROWS_AT_ONCE:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
