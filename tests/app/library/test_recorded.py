"""Snapshots are found again by hash, by the beginning of one and by folder."""

import re
import shutil
from dataclasses import replace

import pytest
from workshop import Workshop

from app.library.recorded import find_snapshot, list_snapshots
from app.store.snapshots import record_snapshot
from model.errors import BadSnapshot, UnknownLibrary


def test_a_snapshot_is_found_by_hash_prefix_and_folder(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n很好,好评\n"))
    frozen = workshop.freeze().snapshot
    for reference in (frozen.hash, frozen.hash[:4], str(frozen.path)):
        assert find_snapshot(workshop.engine, reference).hash == frozen.hash


def test_snapshots_are_listed_oldest_first_once_each_and_by_library(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n很好,好评\n"))
    first = workshop.freeze().snapshot
    workshop.load(workshop.write("b.csv", "text,label\n很坏,差评\n"))
    second = workshop.freeze().snapshot
    workshop.freeze()
    workshop.load(workshop.write("b.csv", "text,label\n很坏,差评\n"), library="other")
    other = workshop.freeze("other").snapshot
    listed = list_snapshots(workshop.engine)
    assert [(record.library, record.hash, record.parent) for record in listed] == [
        ("default", first.hash, None),
        ("default", second.hash, first.hash),
        ("other", other.hash, None),
    ]
    assert [record.hash for record in list_snapshots(workshop.engine, "other")] == [other.hash]
    with pytest.raises(UnknownLibrary, match="libraries: default, other"):
        list_snapshots(workshop.engine, "nobody")


def test_references_that_mean_nothing_or_too_much_are_refused(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n很好,好评\n"))
    frozen = workshop.freeze().snapshot
    with workshop.engine.begin() as connection:
        for number in "01":
            twin = replace(frozen, hash=f"abcd{number * 28}", path=frozen.path / number)
            record_snapshot(connection, 1, twin, parameters={}, last_event=0, taxonomy_version=1, last_rollback=0)
    for reference, message in (
        ("nowhere", "neither a folder nor a hash"),
        ("abc", "neither a folder nor a hash"),
        ("abcde", "no snapshot on record begins with abcde"),
        ("abcd", "abcd begins 2 snapshots (abcd0000"),
        (str(workshop.home), "is not a snapshot"),
    ):
        with pytest.raises(BadSnapshot, match=re.escape(message)):
            find_snapshot(workshop.engine, reference)


def test_a_snapshot_whose_folder_is_gone_or_another_is_refused(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n很好,好评\n"))
    first = workshop.freeze().snapshot
    workshop.load(workshop.write("b.csv", "text,label\n很坏,差评\n"))
    second = workshop.freeze().snapshot
    shutil.rmtree(first.path)
    with pytest.raises(BadSnapshot, match="which is gone; copy it back"):
        find_snapshot(workshop.engine, first.hash)
    shutil.copytree(second.path, first.path)
    with pytest.raises(BadSnapshot, match=f"holds snapshot {second.hash}, and {first.hash} is on record"):
        find_snapshot(workshop.engine, first.hash)
