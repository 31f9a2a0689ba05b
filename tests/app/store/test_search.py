"""The search index: its terms on both databases, that it is what searches go by, and that it stays whole."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from app.library.browsing import browse
from app.library.cataloguing import reindex
from app.library.definition import ImportOptions
from app.library.importing import import_files
from app.library.rows import Columns
from app.library.tables import Reading
from app.settings import Settings
from app.store import search
from app.store.bigrams import index_terms, needs_look, postgresql_query, sqlite_query
from app.store.database import open_database


def test_terms_are_pairs_and_the_last_character() -> None:
    assert index_terms("很好").split() == ["很好", "好"]
    assert index_terms("WiFi").split() == ["wi", "if", "fi", "i"]
    assert index_terms("好 !").split() == ["好\ue020", "\ue020\ue021", "\ue021"]


@pytest.mark.parametrize(
    ("query", "sqlite", "postgresql", "look"),
    [
        ("好", '"好" *', "'好':*", False),
        ("很好", '"很好"', "'很好'", False),
        ("很好吃", '"很好" AND "好吃"', "'很好' & '好吃'", True),
        ("哈哈哈", '"哈哈"', "'哈哈'", True),
        ("Ab", '"ab"', "'ab'", False),
        ("'", '"\ue027" *', "'''':*", True),
        ('"', '"\ue022" *', "'\"':*", True),
        ("\\", '"\ue05c" *', "'\\\\':*", True),
        ("\ue027", '"\ue027" *', "'\ue027':*", True),
    ],
)
def test_a_query_asks_for_its_terms(query: str, sqlite: str, postgresql: str, look: bool) -> None:
    assert sqlite_query(query) == sqlite
    assert postgresql_query(query) == postgresql
    assert needs_look(query) is look


def test_a_long_query_asks_for_some_of_its_terms() -> None:
    query = "".join(map(chr, range(0x4E00, 0x4E00 + 1000)))
    assert sqlite_query(query).count(" AND ") == 31


def fill(engine: sa.Engine, folder: Path, texts: list[str]) -> None:
    path = folder / "a.csv"
    path.write_text("text\n" + "\n".join(texts) + "\n", encoding="utf-8")
    import_files(
        engine,
        [path],
        options=ImportOptions(library="default"),
        columns=Columns(text="text"),
        reading=Reading(),
        rejects_folder=folder / "rejects",
    )


def test_the_index_is_what_a_rare_search_goes_by(settings: Settings, tmp_path: Path) -> None:
    """A look through ends before the last sample, so nothing but the index can find it."""
    with open_database(settings) as engine:
        fill(engine, tmp_path, [f"第{row}条" for row in range(5_000)] + ["很慢"])
        for query in ("慢", "很慢"):
            assert [sample.text for sample in browse(engine, library="default", query=query).samples] == ["很慢"]
        with engine.begin() as connection:
            if engine.dialect.name == "postgresql":
                found = f"SELECT * FROM samples WHERE {search._GIN_EXPRESSION} @@ '''慢'':*'::tsquery OFFSET 0"
                plan = "\n".join(connection.exec_driver_sql(f"EXPLAIN {found}").scalars())
                assert "Bitmap Index Scan on samples_bigrams" in plan
                return
            connection.exec_driver_sql("INSERT INTO catalogue_bigrams (catalogue_bigrams) VALUES ('delete-all')")
        assert browse(engine, library="default", query="慢").total == 0
        reindex(engine, "default")
        assert browse(engine, library="default", query="慢").total == 1


def test_an_import_leaves_nothing_waiting_for_its_place_in_the_index(settings: Settings, tmp_path: Path) -> None:
    with open_database(settings) as engine:
        fill(engine, tmp_path, ["很慢", "很快"])
        if engine.dialect.name != "postgresql":
            with engine.connect() as connection:
                connection.exec_driver_sql(
                    "INSERT INTO catalogue_bigrams (catalogue_bigrams) VALUES ('integrity-check')"
                )
            return
        with engine.connect() as connection:
            cleaned = connection.exec_driver_sql("SELECT gin_clean_pending_list('samples_bigrams'::regclass)")
            assert cleaned.scalar_one() == 0
