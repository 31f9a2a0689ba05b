"""Which predictions the doctor judges by, and which it refuses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patients import SENTENCES, census_of, rows
from workshop import Workshop

from app.library.doctor.judging import Judged, read_judged
from app.library.labelling import label_sample
from app.library.revisions import rename
from app.library.taxonomies import change_taxonomy
from model.errors import BadRun
from model.predictions import SplitPredictions, write_predictions
from model.run import Run, start_run
from model.snapshot import Snapshot
from model.types import Sample, Split, Taxonomy

TWIN = f"{SENTENCES[0]}呢"


@pytest.fixture
def frozen(workshop: Workshop) -> Snapshot:
    """Ten samples and a near duplicate of the first, all in train."""
    cells = [(text, ("好评", "差评")[number % 2]) for number, text in enumerate(SENTENCES)]
    workshop.load(workshop.write("a.csv", rows(*cells, (TWIN, "好评"))))
    return workshop.freeze(test=0, dev=0).snapshot


def fold_of(sample: Sample) -> int:
    return 0 if sample.text in (SENTENCES[0], TWIN) else len(sample.text) % 2


def trained(
    workshop: Workshop, snapshot: Snapshot, *, folds: dict[str, int] | None = None, score: float = 0.5, **given: Any
) -> Path:
    """A run by folds, as training leaves it. folds: by text, where it is not `fold_of`."""
    path = workshop.home / "runs" / "folds"
    settings = {"config": {"folds": 2}, "snapshot": snapshot.hash, "taxonomy": snapshot.taxonomy} | given
    run = start_run(Run(path=path, arch="linear", seed=0, snapshot_path=str(snapshot.path), **settings))
    samples = list(snapshot.samples())
    numbers = np.array([(folds or {}).get(sample.text, fold_of(sample)) for sample in samples], dtype=np.int64)
    scores = np.full((len(samples), len(run.taxonomy)), score, np.float32)
    write_predictions(run.path, {Split.TRAIN: SplitPredictions(samples, scores, numbers)})
    run.finish()
    return path


def judged(workshop: Workshop, path: Path, snapshot: Snapshot) -> Judged:
    return read_judged(path, census_of(workshop).census, {snapshot.hash})


def test_predictions_of_all_that_is_as_it_was_are_taken(workshop: Workshop, frozen: Snapshot) -> None:
    found = judged(workshop, trained(workshop, frozen), frozen)
    assert (len(found.predictions), found.gone, found.relabelled, found.leaked) == (11, 0, 0, 0)


def test_samples_that_are_gone_or_relabelled_since_are_left_out_and_counted(
    workshop: Workshop, frozen: Snapshot
) -> None:
    path = trained(workshop, frozen)
    label_sample(workshop.engine, library="default", sample=SENTENCES[1], is_text=True, labels=["好评"], by="标注员甲")
    census = census_of(workshop).census
    workshop.load(
        workshop.write("b.csv", rows(*((text, "好评") for text in SENTENCES[:3]), ("x", "差评"))), library="b"
    )
    found = read_judged(path, census, {frozen.hash})
    assert (len(found.predictions), found.gone, found.relabelled) == (10, 0, 1)
    smaller = census_of(workshop, "b").census
    found = read_judged(path, smaller, {frozen.hash})
    assert (len(found.predictions), found.gone, found.relabelled) == (2, 8, 1)


def test_a_run_that_has_seen_what_it_judges_is_refused(workshop: Workshop, frozen: Snapshot) -> None:
    path = trained(workshop, frozen, config={})
    with pytest.raises(BadRun, match=r"not trained by folds.*wenlei train --snapshot HASH --folds 5"):
        judged(workshop, path, frozen)


def test_predictions_of_another_snapshot_are_refused(workshop: Workshop, frozen: Snapshot) -> None:
    path = trained(workshop, replace(frozen, hash="f" * 32))
    with pytest.raises(BadRun, match=r"predictions of another snapshot: f{32} was not frozen from library 'default'"):
        judged(workshop, path, frozen)


def test_a_taxonomy_that_has_changed_since_is_refused(workshop: Workshop, frozen: Snapshot) -> None:
    path = trained(workshop, frozen)
    change_taxonomy(workshop.engine, "default", rename("好评", "满意"), by="标注员甲")
    with pytest.raises(BadRun, match="taxonomy of library 'default' is not what it was"):
        judged(workshop, path, frozen)


def test_folds_that_part_near_duplicates_are_refused_with_two_of_them(workshop: Workshop, frozen: Snapshot) -> None:
    ids = sorted(sample.id for sample in frozen.samples() if sample.text in (SENTENCES[0], TWIN))
    path = trained(workshop, frozen, folds={TWIN: 1})
    with pytest.raises(BadRun, match=f"in fold . and fold .: samples {ids[0]} and {ids[1]}"):
        judged(workshop, path, frozen)


def test_a_score_that_is_no_number_is_refused(workshop: Workshop, frozen: Snapshot) -> None:
    path = trained(workshop, frozen, score=float("nan"))
    with pytest.raises(BadRun, match="which is not from 0 to 1"):
        judged(workshop, path, frozen)


def test_the_classes_have_to_be_the_runs(workshop: Workshop, frozen: Snapshot) -> None:
    other = Taxonomy(task=frozen.taxonomy.task, labels=tuple(reversed(frozen.taxonomy.labels)))
    path = trained(workshop, frozen, taxonomy=other)
    with pytest.raises(BadRun, match="taxonomy"):
        judged(workshop, path, frozen)
