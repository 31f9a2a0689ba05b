"""A snapshot's name is its content, and nobody can change the one without the other."""

import json
import signal
import subprocess
import sys
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from model.errors import BadSnapshot
from model.snapshot import ContentHash, open_snapshot, write_snapshot
from model.text import Normaliser, Width, sample_id
from model.types import Sample, Split, Task, Taxonomy

TAXONOMY = Taxonomy(Task.SINGLE, ("好评", "差评"))
MULTI = Taxonomy(Task.MULTI, ("环境", "服务", "价格"), multiple=True)


def sample(text, *labels, split=Split.TRAIN, pair=None):
    return Sample(sample_id(text, pair), text, pair, labels, split)


SAMPLES = sorted(
    [
        sample("房间很干净，下次还来", "好评"),
        sample("早餐凉了，没人管", "差评", split=Split.TEST),
        sample("隔音太差，一夜没睡", "差评", split=Split.DEV),
        sample("前台热情", "好评", split=Split.TEST, pair="服务怎么样"),
    ],
    key=lambda each: each.id,
)


def freeze(folder, samples=SAMPLES, taxonomy=TAXONOMY, **options):
    return write_snapshot(samples, taxonomy=taxonomy, normaliser=Normaliser(), folder=folder, **options)


def edit_manifest(snapshot, **changes):
    path = snapshot.path / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_what_was_frozen_comes_back(tmp_path):
    written = freeze(tmp_path, parent="0" * 32)
    opened = open_snapshot(written.path)
    assert opened == written
    assert list(opened.samples()) == SAMPLES
    assert [each.text for each in opened.samples(Split.DEV)] == ["隔音太差，一夜没睡"]
    assert opened.parent == "0" * 32
    assert opened.normaliser == Normaliser()


def test_the_folder_is_named_after_the_hash_and_is_all_there_is(tmp_path):
    snapshot = freeze(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [snapshot.hash]
    assert sorted(path.name for path in snapshot.path.iterdir()) == ["manifest.json", "samples.parquet"]


def test_counts_are_kept_by_split_and_label(tmp_path):
    assert freeze(tmp_path).counts == {
        "total": 4,
        "test": 2,
        "dev": 1,
        "train": 1,
        "labels": {
            "test": {"好评": 1, "差评": 1},
            "dev": {"好评": 0, "差评": 1},
            "train": {"好评": 1, "差评": 0},
        },
    }


def test_parent_provenance_place_and_order_of_labels_do_not_change_the_hash(tmp_path):
    rows = [sample("又贵又吵", "环境", "价格")]
    turned = [sample("又贵又吵", "价格", "环境")]
    one = freeze(tmp_path / "a", rows, MULTI)
    other = freeze(tmp_path / "b", turned, MULTI, parent=one.hash, provenance={"file": "reviews.csv"})
    assert one.hash == other.hash


def test_the_hash_stays_the_same_for_ever():
    content = ContentHash(TAXONOMY)
    for each in SAMPLES:
        content.add(each)
    assert content.hexdigest() == "016f9e7956343f5c397c1d3ae13834be"


@pytest.mark.parametrize(
    "change", [{"text": "改了"}, {"pair": "问"}, {"labels": ("差评",)}, {"split": Split.DEV}, {"id": "f" * 32}]
)
def test_every_part_of_a_row_counts_for_the_hash(tmp_path, change):
    rows = [sample("房间很干净", "好评")]
    assert freeze(tmp_path, rows).hash != freeze(tmp_path, [replace(rows[0], **change)]).hash


def test_the_taxonomy_counts_for_the_hash(tmp_path):
    turned = Taxonomy(Task.SINGLE, ("差评", "好评"))
    assert freeze(tmp_path).hash != freeze(tmp_path, taxonomy=turned).hash


def test_freezing_the_same_again_keeps_what_is_there(tmp_path):
    first = freeze(tmp_path)
    before = (first.path / "manifest.json").stat().st_mtime_ns
    assert freeze(tmp_path, provenance={"later": True}) == first
    assert (first.path / "manifest.json").stat().st_mtime_ns == before
    assert len(list(tmp_path.iterdir())) == 1


def test_more_rows_than_one_batch_are_all_written(tmp_path, monkeypatch):
    monkeypatch.setattr("model.snapshot.ROWS_AT_ONCE", 7)
    rows = sorted((sample(f"第{number}条", "好评") for number in range(50)), key=lambda each: each.id)
    assert list(freeze(tmp_path, rows).samples()) == rows


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "no labelled samples"),
        (SAMPLES[::-1], "must be sorted and unique"),
        ([SAMPLES[0], SAMPLES[0]], "must be sorted and unique"),
        ([sample("好", "中评")], "not all of them in the taxonomy"),
        ([sample("好")], "not all of them in the taxonomy"),
        ([sample("好", "好评", "差评")], "the task single allows one"),
    ],
)
def test_bad_rows_are_refused_and_leave_nothing(tmp_path, rows, reason):
    with pytest.raises(BadSnapshot, match=reason):
        freeze(tmp_path, rows)
    assert list(tmp_path.iterdir()) == []


def test_a_writer_killed_half_way_leaves_nothing_to_see(tmp_path):
    script = """
import os, signal, sys
from pathlib import Path
import model.snapshot
from model.snapshot import write_snapshot
from model.text import Normaliser
from model.types import Sample, Split, Task, Taxonomy
model.snapshot.ROWS_AT_ONCE = 10
def rows():
    for number in range(50):
        yield Sample(f"{number:032x}", str(number), None, ("a",), Split.TRAIN)
    os.kill(os.getpid(), signal.SIGKILL)
write_snapshot(rows(), taxonomy=Taxonomy(Task.SINGLE, ("a",)), normaliser=Normaliser(), folder=Path(sys.argv[1]))
"""
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert list(tmp_path.glob("[!.]*")) == []
    assert freeze(tmp_path).counts["total"] == 4


@pytest.mark.parametrize(
    "change",
    [
        {"text": "改过的字"},
        {"split": "train"},
        {"labels": ["好评", "差评"]},
        {"labels": None},
        {"split": "holdout"},
        {"id": "0"},
    ],
)
def test_a_changed_row_is_found(tmp_path, change):
    snapshot = freeze(tmp_path)
    table = pq.read_table(snapshot.path / "samples.parquet")
    rows = table.to_pylist()
    place = next(place for place, row in enumerate(rows) if row["split"] == "test")
    rows[place] = {**rows[place], **change}
    pq.write_table(table.from_pylist(rows, table.schema), snapshot.path / "samples.parquet")
    with pytest.raises(BadSnapshot, match=str(snapshot.path)):
        open_snapshot(snapshot.path)


def test_no_changed_byte_changes_a_sample_unnoticed(tmp_path):
    snapshot = freeze(tmp_path)
    file = snapshot.path / "samples.parquet"
    sound, found = file.read_bytes(), 0
    places = range(0, len(sound), 11)
    for place in places:
        file.write_bytes(sound[:place] + bytes([sound[place] ^ 0xFF]) + sound[place + 1 :])
        try:
            assert list(open_snapshot(snapshot.path).samples()) == SAMPLES  # a byte of Parquet's own statistics
        except BadSnapshot:
            found += 1
    assert found > len(places) / 2


def test_a_file_cut_short_is_found(tmp_path):
    snapshot = freeze(tmp_path)
    file = snapshot.path / "samples.parquet"
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(BadSnapshot, match="can't be read"):
        open_snapshot(snapshot.path)


@pytest.mark.parametrize(
    "change",
    [
        {"hash": "0" * 32},
        {"taxonomy": {**TAXONOMY.to_json(), "labels": ["差评", "好评"]}},
        {"taxonomy": MULTI.to_json()},
        {"taxonomy": None},
        {"counts": {"total": 5}},
        {"normaliser": {"width": "halfway"}},
        {"schema_version": "one"},
    ],
)
def test_a_changed_manifest_is_found(tmp_path, change):
    snapshot = freeze(tmp_path)
    edit_manifest(snapshot, **change)
    with pytest.raises(BadSnapshot, match=str(snapshot.path)):
        open_snapshot(snapshot.path)


def test_a_newer_schema_says_to_update(tmp_path):
    snapshot = freeze(tmp_path)
    edit_manifest(snapshot, schema_version=2)
    with pytest.raises(BadSnapshot, match="has schema 2, this wenlei reads 1; update it"):
        open_snapshot(snapshot.path)


def test_what_is_no_snapshot_is_named_so(tmp_path):
    with pytest.raises(BadSnapshot, match="is not a snapshot: no manifest"):
        open_snapshot(tmp_path / "nowhere")
    (tmp_path / "manifest.json").write_text("{half")
    with pytest.raises(BadSnapshot, match=r"manifest\.json can't be read"):
        open_snapshot(tmp_path)


def test_the_settings_of_the_normaliser_travel_along(tmp_path):
    settings = Normaliser(width=Width.ALL, simplify=True, markup=False)
    snapshot = write_snapshot(SAMPLES, taxonomy=TAXONOMY, normaliser=settings, folder=tmp_path)
    assert open_snapshot(snapshot.path).normaliser == settings
