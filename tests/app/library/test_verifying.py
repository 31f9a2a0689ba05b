"""A library is verified whole: whatever was changed behind its back is found and named."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from workshop import Workshop

from app.library.cataloguing import reindex
from app.library.verifying import Problem, rows_to_verify, verify
from app.settings import Settings
from app.store.database import open_database
from app.store.snapshots import record_snapshot
from app.store.tables import catalogue, label_events, samples
from model.errors import UnknownLibrary
from model.snapshot import write_snapshot
from model.text import Normaliser, sample_id
from model.types import Sample, Split, Task, Taxonomy

REMAKE = "make the catalogue anew with wenlei library reindex"
ROWS = "text,label\n很好,好评\n很坏,差评\n还行,中评\n"


@pytest.fixture
def filled(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("a.csv", ROWS))
    workshop.freeze()
    return workshop


def problems(workshop: Workshop, library: str | None = None) -> list[Problem]:
    return list(verify(workshop.engine, library=library))


def change(workshop: Workshop, *statements: sa.Executable) -> None:
    """Past the triggers and foreign keys, as only a broken disk or a hand in the database can."""
    with workshop.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        connection.detach()  # it must not come back to the pool
        if connection.dialect.name == "sqlite":
            driver.execute("PRAGMA foreign_keys = OFF")
            driver.execute("DROP TRIGGER label_events_no_update")
        else:
            driver.execute("SET session_replication_role = replica")
            driver.commit()
        with connection.begin():
            for statement in statements:
                connection.execute(statement)


def test_a_library_in_order_has_no_problem_and_every_row_is_looked_at(filled: Workshop) -> None:
    heard: list[int] = []
    assert list(verify(filled.engine, on_rows=heard.append)) == []
    assert sum(heard) == rows_to_verify(filled.engine) == 15


def test_an_empty_database_and_unlabelled_texts_are_in_order(workshop: Workshop) -> None:
    assert problems(workshop) == []
    workshop.load(workshop.write("a.csv", "text\n很好\n"), label=None)
    assert problems(workshop) == []


def test_only_the_library_asked_for_is_verified(filled: Workshop) -> None:
    filled.load(filled.write("b.csv", "text,label\n不错,好评\n"), library="other")
    shutil.rmtree(filled.freeze("other").snapshot.path)
    assert problems(filled, "default") == []
    assert len(problems(filled, "other")) == len(problems(filled)) == 1
    with pytest.raises(UnknownLibrary, match="no library 'nobody'"):
        problems(filled, "nobody")


def test_a_text_that_was_changed_is_found(filled: Workshop) -> None:
    change(filled, sa.update(samples).where(samples.c.text == "很好").values(text="很差", imported_split=7))
    place = f"library default, sample {sample_id('很好')}"
    assert problems(filled) == [
        Problem(place, "its id is not the hash of its text"),
        Problem(place, "split 7 is none of test, dev, train"),
    ]


def test_references_that_lead_nowhere_are_found(filled: Workshop) -> None:
    gone = sample_id("很好")
    change(
        filled,
        sa.delete(samples).where(samples.c.id == gone),
        sa.update(label_events).where(label_events.c.sample_id == sample_id("很坏")).values(source_id=77),
    )
    assert problems(filled) == [
        Problem(f"label_events.library_id and label_events.sample_id = 1, {gone}", "there is no such row in samples"),
        Problem("label_events.source_id = 77", "there is no such row in sources"),
        Problem(f"library default, sample {gone}", f"it is in the catalogue alone; {REMAKE}"),
    ]


def test_an_undo_of_nothing_is_found(filled: Workshop) -> None:
    change(filled, sa.update(label_events).where(label_events.c.id == 1).values(undoes=3, labels="[]"))
    undone, catalogued = problems(filled)
    assert undone == Problem("label event 1", "it undoes no earlier event of its sample")
    assert catalogued.what.endswith(f"its events say None; {REMAKE}")


def test_a_catalogue_that_the_events_contradict_is_found_and_made_anew(filled: Workshop) -> None:
    missing, wrong = sample_id("很好"), sample_id("很坏")
    with filled.engine.begin() as connection:
        connection.execute(sa.delete(catalogue).where(catalogue.c.sample_id == missing))
        connection.execute(sa.update(catalogue).where(catalogue.c.sample_id == wrong).values(labels='["好评"]'))
    assert {(problem.place.split()[-1], problem.what) for problem in problems(filled)} == {
        (missing, f"it is missing from the catalogue; {REMAKE}"),
        (wrong, f'the catalogue says ["好评"], its events say ["差评"]; {REMAKE}'),
    }
    reindex(filled.engine, "default")
    assert problems(filled) == []


@pytest.mark.parametrize("stored", ["好评", "[]", '["好评", "中评"]', '["中评", "中评"]', "[1]", '{"a": 1}'])
def test_labels_that_are_no_list_of_labels_are_found(filled: Workshop, stored: str) -> None:
    event = sa.update(label_events).where(label_events.c.sample_id == sample_id("很好")).values(labels=stored)
    change(filled, event)
    (problem,) = problems(filled)
    assert problem.place.startswith("library default, label event ")
    assert problem.what == f"{stored!r} is no sorted list of labels (1 events say so)"


def test_labels_outside_the_taxonomy_and_too_many_of_them_are_found(filled: Workshop) -> None:
    def said(text: str, labels: list[str]) -> sa.Update:
        return (
            sa.update(label_events)
            .where(label_events.c.sample_id == sample_id(text))
            .values(labels=json.dumps(labels, ensure_ascii=False))
        )

    change(filled, said("很好", ["神评"]), said("很坏", ["中评", "差评"]))
    assert {(problem.place.split()[-1], problem.what) for problem in problems(filled)} == {
        (sample_id("很好"), "label '神评' is not in the taxonomy"),
        (sample_id("很坏"), "2 labels (中评, 差评), and the task single allows one"),
    }


def test_snapshots_that_are_gone_changed_or_exchanged_are_found(filled: Workshop) -> None:
    first = filled.freeze().snapshot
    filled.load(filled.write("b.csv", "text,label\n不错,好评\n"))
    second = filled.freeze().snapshot
    place = f"library default, snapshot {first.hash}"
    kept = filled.home / "kept"
    first.path.rename(kept)
    assert problems(filled) == [Problem(place, f"its folder {first.path.resolve()} is gone; copy it back")]
    shutil.copytree(second.path, first.path)
    (exchanged,) = problems(filled)
    assert (exchanged.place, second.hash in exchanged.what) == (place, True)
    shutil.rmtree(first.path)
    shutil.copytree(kept, first.path)
    rows = first.path / "samples.parquet"
    content = bytearray(rows.read_bytes())
    content[len(content) // 3] ^= 1
    rows.write_bytes(content)
    (changed,) = problems(filled)
    assert changed.place == place
    assert str(first.path) in changed.what


def test_rows_of_a_snapshot_that_part_near_copies_or_carry_wrong_ids_are_found(filled: Workshop) -> None:
    taxonomy = Taxonomy(task=Task.SINGLE, labels=("好评",))
    rows = [
        Sample(id=sample_id("很好"), text="很好", pair=None, labels=("好评",), split=Split.TRAIN),
        Sample(id=sample_id("很好！"), text="很好！", pair=None, labels=("好评",), split=Split.TEST),
        Sample(id=sample_id("不错"), text="不错", pair=None, labels=("好评",), split=Split.TEST),
        Sample(id="f" * 32, text="别处来的", pair=None, labels=("好评",), split=Split.DEV),
    ]
    ordered = sorted(rows, key=lambda sample: sample.id)
    snapshot = write_snapshot(ordered, taxonomy=taxonomy, normaliser=Normaliser(), folder=filled.home / "s")
    with filled.engine.begin() as connection:
        record_snapshot(connection, 1, snapshot, parameters={}, last_event=0, taxonomy_version=1, last_rollback=0)
    place = f"library default, snapshot {snapshot.hash}, sample"
    copies = sorted(rows[:2], key=lambda sample: sample.id)
    assert problems(filled) == [
        Problem(f"{place} {'f' * 32}", "its id is not the hash of its text"),
        Problem(
            f"{place} {copies[1].id}",
            f"it is in {copies[1].split} and its near duplicate {copies[0].id} in {copies[0].split}",
        ),
    ]


def test_a_damaged_sqlite_file_is_found(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    with open_database(settings) as engine:
        workshop = Workshop(engine, tmp_path)
        workshop.load(workshop.write("a.csv", ROWS))
    index = "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master WHERE name = 'label_events_of_sample'"
    with closing(sqlite3.connect(tmp_path / "wenlei.db")) as hidden, hidden:
        hidden.execute("PRAGMA writable_schema = ON")
        row = hidden.execute(index).fetchone()
        hidden.execute("DELETE FROM sqlite_master WHERE name = 'label_events_of_sample'")
    with closing(sqlite3.connect(tmp_path / "wenlei.db")) as unindexed, unindexed:
        columns = "library_id, sample_id, labels, actor_kind, actor, created_at"
        unindexed.execute(f"INSERT INTO label_events ({columns}) SELECT {columns} FROM label_events WHERE id = 1")
    with closing(sqlite3.connect(tmp_path / "wenlei.db")) as restored, restored:
        restored.execute("PRAGMA writable_schema = ON")
        restored.execute("INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) VALUES (?, ?, ?, ?, ?)", row)
    with open_database(settings) as engine:
        found = list(verify(engine))
    assert {problem.place for problem in found} == {"database"}
    assert "row 4 missing from index label_events_of_sample; restore it from a backup" in found[0].what
