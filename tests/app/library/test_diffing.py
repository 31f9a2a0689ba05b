"""Differences between snapshots, of libraries and of any rows at all."""

from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from app.library.diffing import ChangeKind, diff_snapshots
from model.errors import BadSnapshot
from model.snapshot import Snapshot, write_snapshot
from model.text import Normaliser, sample_id
from model.types import Sample, Split, Task, Taxonomy

Rows = dict[str, tuple[str, Split]]  # text → labels joined by |, split
Freeze = Callable[..., Snapshot]
SINGLE = Taxonomy(task=Task.SINGLE, labels=("中评", "好评", "差评"))
MULTI = Taxonomy(task=Task.MULTI, labels=("中评", "好评", "差评"), multiple=True)


def samples(rows: Rows) -> Iterable[Sample]:
    found = [
        Sample(id=sample_id(text), text=text, pair=None, labels=tuple(labels.split("|")), split=split)
        for text, (labels, split) in rows.items()
    ]
    return sorted(found, key=lambda sample: sample.id)


@pytest.fixture
def freeze(tmp_path: Path) -> Freeze:
    def write(rows: Rows, taxonomy: Taxonomy = SINGLE) -> Snapshot:
        return write_snapshot(samples(rows), taxonomy=taxonomy, normaliser=Normaliser(), folder=tmp_path)

    return write


def test_samples_are_added_removed_relabelled_and_moved(freeze: Freeze) -> None:
    before = freeze(
        {
            "同": ("好评", Split.TRAIN),
            "去": ("好评", Split.TEST),
            "改": ("好评", Split.DEV),
            "改二": ("好评", Split.DEV),
            "移": ("差评", Split.TRAIN),
            "改且移": ("差评", Split.TRAIN),
        }
    )
    after = freeze(
        {
            "同": ("好评", Split.TRAIN),
            "来": ("中评", Split.TRAIN),
            "改": ("差评", Split.DEV),
            "改二": ("差评", Split.DEV),
            "移": ("差评", Split.TEST),
            "改且移": ("中评", Split.TEST),
        }
    )
    heard: list[int] = []
    diff = diff_snapshots(before, after, examples=1, on_sample=heard.append)
    assert {kind.value: count for kind, count in diff.counts.items()} == {
        "added": 1,
        "removed": 1,
        "relabelled": 3,
        "moved": 2,
    }
    assert diff.unchanged == 1
    assert diff.label_changes == {("好评", "差评"): 2, ("差评", "中评"): 1}
    assert diff.split_changes == {(Split.TRAIN, Split.TEST): 2}
    assert sum(heard) == 12
    assert [change.sample.text for change in diff.examples[ChangeKind.ADDED]] == ["来"]
    assert [change.after for change in diff.examples[ChangeKind.REMOVED]] == [None]
    assert len(diff.examples[ChangeKind.RELABELLED]) == 1


def test_labels_that_nothing_took_the_place_of_stand_beside_none(freeze: Freeze) -> None:
    before = freeze({"甲": ("好评|中评", Split.TRAIN), "乙": ("好评", Split.TRAIN), "丙": ("好评", Split.TRAIN)}, MULTI)
    after = freeze({"甲": ("好评", Split.TRAIN), "乙": ("好评|差评", Split.TRAIN), "丙": ("差评", Split.TRAIN)}, MULTI)
    diff = diff_snapshots(before, after)
    assert diff.label_changes == {("中评", None): 1, (None, "差评"): 1, ("好评", "差评"): 1}


def test_a_taxonomy_that_changed_is_told(freeze: Freeze) -> None:
    rows = {"甲": ("好评", Split.TRAIN)}
    later = Taxonomy(task=Task.SINGLE, labels=("好评", "中评", "其他"))
    taxonomy = diff_snapshots(freeze(rows), freeze(rows, later)).taxonomy
    assert (taxonomy.added, taxonomy.removed, taxonomy.reordered) == (("其他",), ("差评",), True)
    assert (taxonomy.level_sep, taxonomy.multiple) == (None, None)
    paths = [
        Taxonomy(task=Task.HIERARCHICAL, labels=("好评",), level_sep=level_sep, multiple=multiple)
        for level_sep, multiple in (("-", False), ("/", True))
    ]
    taxonomy = diff_snapshots(*(freeze(rows, path) for path in paths)).taxonomy
    assert (taxonomy.level_sep, taxonomy.multiple) == (("-", "/"), (False, True))


def test_snapshots_of_different_tasks_are_not_compared(freeze: Freeze) -> None:
    rows = {"甲": ("好评", Split.TRAIN)}
    with pytest.raises(BadSnapshot, match=r"holds task single and .* holds multi; only snapshots of one task"):
        diff_snapshots(freeze(rows), freeze(rows, MULTI))


_SIDES = st.dictionaries(
    st.sampled_from("甲乙丙丁戊己庚"),
    st.sampled_from([*product(("好评", "差评"), (Split.TRAIN, Split.TEST))]),
    min_size=1,
)


@limits(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=_SIDES, after=_SIDES)
def test_one_walk_finds_what_a_comparison_of_all_rows_finds(freeze: Freeze, before: Rows, after: Rows) -> None:
    diff = diff_snapshots(freeze(before), freeze(after), examples=100)
    both = before.keys() & after.keys()
    expected = {
        ChangeKind.ADDED: after.keys() - both,
        ChangeKind.REMOVED: before.keys() - both,
        ChangeKind.RELABELLED: {text for text in both if before[text][0] != after[text][0]},
        ChangeKind.MOVED: {text for text in both if before[text][1] != after[text][1]},
    }
    found = {kind: {change.sample.text for change in changes} for kind, changes in diff.examples.items()}
    assert found == expected
    assert diff.counts == {kind: len(texts) for kind, texts in expected.items()}
    assert diff.unchanged == sum(before[text] == after[text] for text in both)
