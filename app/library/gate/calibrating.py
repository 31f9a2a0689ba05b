"""The calibration samples: texts that the model has not seen, with labels that people or imports gave them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from app.library.labels import current_labels, fits_none, label_positions
from app.library.recorded import find_record, find_snapshot, open_recorded
from app.library.scoring import check_labels
from app.store.database import connect, reading
from app.store.events import SampleEvents, events_of_samples
from app.store.libraries import Library
from app.store.texts import SampleText
from model.errors import BadInput, BadSnapshot
from model.near import near_groups
from model.runtime.base import Classifier
from model.snapshot import Snapshot
from model.types import Sample, Split, preview

SAMPLES_AT_ONCE = 5_000
OnSamples = Callable[[int], None]
SPLITS = (Split.TEST, Split.DEV)  # that a model may be calibrated on: it was not trained on them


@dataclass(frozen=True, slots=True)
class Calibration:
    """Samples with labels, (n,), of `split` of `snapshot`, which the model was not trained on.

    gold: their labels, sorted, as people and imports have them today; none where a person says that no class fits, and
    whatever a model says of it is wrong. corrected: how many of these are not those of the
    snapshot any more. by_machine: left out, for their label comes from a sweep by now. unlabelled: left out, for they
    have none any more. known: how many of all are in the library, so that their labels could be looked up.
    """

    snapshot: Snapshot
    split: Split
    samples: list[SampleText]
    gold: list[tuple[str, ...]]
    corrected: int
    by_machine: int
    unlabelled: int
    known: int


def load_calibration(
    engine: sa.Engine,
    *,
    library: Library,
    classifier: Classifier,
    trained_on: str,
    reference: str | None,
    split: Split,
    on_samples: OnSamples = lambda _: None,
) -> Calibration:
    """Read the calibration samples, once it is sure that the model was not trained on them or on near duplicates.

    trained_on: the hash of the snapshot that the model was trained on. reference: the snapshot to calibrate on, as
    `find_snapshot` takes it; if None, that one. `on_samples` hears of samples that were compared.

    Raises:
        BadSnapshot: a snapshot can't be found or read. BadTaxonomy: a taxonomy is another one. BadInput: the split is
        train, or has no samples, or the model was trained on some of it.
    """
    if split not in SPLITS:
        raise BadInput(f"--split {split}: the model was trained on it, and is surer and righter there than elsewhere")
    source = find_snapshot(engine, reference) if reference else _trained_on(engine, classifier, trained_on)
    trained = source if source.hash == trained_on else _trained_on(engine, classifier, trained_on)
    check_labels(classifier, source.taxonomy, f"snapshot {source.hash}")
    samples = list(source.samples(split))
    if not samples:
        raise BadInput(
            f"snapshot {source.hash} has no samples in {split}; freeze one with --{split} 0.2, or name another"
        )
    _check_unseen(samples, trained, f"{split} of snapshot {source.hash}", on_samples)
    return _with_labels_of_today(engine, library, source, split, samples)


def _trained_on(engine: sa.Engine, classifier: Classifier, trained_on: str) -> Snapshot:
    try:
        return open_recorded(find_record(engine, trained_on))
    except BadSnapshot as error:
        raise BadInput(
            f"model {classifier.name!r} was trained on snapshot {trained_on}, which can't be read ({error}); without "
            "it nobody can tell which samples the model has seen: freeze that snapshot again or copy it back, or train "
            "a new model"
        ) from None


def _check_unseen(samples: Sequence[Sample], trained: Snapshot, place: str, on_samples: OnSamples) -> None:
    """Refuse samples that the model was trained on, or on near duplicates of them.

    Raises:
        BadInput: there are some.
    """
    seen = trained.counts["train"]

    def texts() -> Iterator[tuple[str, str | None]]:
        for sample in trained.samples(Split.TRAIN):
            yield sample.text, sample.pair
        for sample in samples:
            yield sample.text, sample.pair

    groups = near_groups(texts(), on_texts=on_samples).groups
    of_train = set(groups[:seen].tolist())
    leaked = [sample.id for sample, group in zip(samples, groups[seen:].tolist(), strict=True) if group in of_train]
    if leaked:
        raise BadInput(
            f"{place}: the model was trained on {len(leaked):,} of its {len(samples):,} samples or on near duplicates "
            f"of them ({preview(leaked, 3)}), which says nothing about texts that are new to it; calibrate on the test "
            f"split of snapshot {trained.hash}, or freeze the library anew and train on that"
        )


def _with_labels_of_today(
    engine: sa.Engine, library: Library, source: Snapshot, split: Split, samples: Sequence[Sample]
) -> Calibration:
    """The samples with what is known of them now: a person may have corrected a label since it was frozen."""
    kept: list[SampleText] = []
    gold: list[tuple[str, ...]] = []
    corrected = by_machine = unlabelled = known = 0
    positions = label_positions(library.definition.taxonomy)
    with connect(engine) as connection, reading(connection):
        for start in range(0, len(samples), SAMPLES_AT_ONCE):
            some = samples[start : start + SAMPLES_AT_ONCE]
            ids = [sample.id for sample in some]
            today = {sample.id: sample for sample in events_of_samples(connection, library.id, ids)}
            for sample in some:
                labels = tuple(sorted(sample.labels))
                if sample.id in today:
                    known += 1
                    current = current_labels(today[sample.id].events, positions)
                    if current is None and not fits_none(today[sample.id]):
                        unlabelled += 1
                        continue
                    if current and _said_by_sweep(today[sample.id], current.event):
                        by_machine += 1
                        continue
                    labels_now = tuple(sorted(current.labels)) if current else ()
                    corrected += labels_now != labels
                    labels = labels_now
                kept.append(SampleText(sample.id, sample.text, sample.pair))
                gold.append(labels)
    return Calibration(source, split, kept, gold, corrected, by_machine, unlabelled, known)


def _said_by_sweep(sample: SampleEvents, event: int) -> bool:
    return any(said.id == event and said.sweep is not None for said in sample.events)
