"""/v1/snapshots over a real socket, on both databases: freeze, list, compare, download, and what is refused."""

import io
import json
import shutil
import socket
import threading
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest

from app.api import downloads, snapshots
from app.api.downloads import KINDS
from app.library.diffing import diff_snapshots
from app.library.exporting import ExportFormat, export_snapshot
from app.library.recorded import find_snapshot
from app.store.audit import latest_events
from tests.app.api.servers import ask_as_written
from tests.app.library.workshop import Workshop

LIBRARY = "酒店"
FREEZE = {"library": LIBRARY, "test": 0.25, "dev": 0.25}


@pytest.fixture
def filled(workshop: Workshop) -> Workshop:
    """A library of forty texts in two classes."""
    rows = "".join(f"第{number}间房{'很好' * number},{'好评' if number % 2 else '差评'}\n" for number in range(40))
    workshop.load(workshop.write("a.csv", f"text,label\n{rows}"), library=LIBRARY)
    return workshop


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def freeze(client: httpx.Client, **given: object) -> str:
    answer = client.post("/v1/snapshots", json=FREEZE | given)
    assert answer.status_code == 201, answer.text
    return answer.json()["snapshot"]


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def nothing_left(workshop: Workshop) -> bool:
    scratch = workshop.home / "scratch"
    return not (scratch.exists() and list(scratch.iterdir()))


def test_a_library_is_frozen_listed_and_shown(operate: httpx.Client, filled: Workshop) -> None:
    answer = operate.post("/v1/snapshots", json=FREEZE)
    frozen = answer.json()
    assert (answer.status_code, frozen["counts"]["total"], frozen["counts"]["conflicts"]) == (201, 40, 0)
    assert frozen["snapshot"] == filled.freeze(LIBRARY, test=0.25, dev=0.25).snapshot.hash
    assert (filled.home / "snapshots" / LIBRARY / frozen["snapshot"]).is_dir()
    listed = operate.get("/v1/snapshots", params={"library": LIBRARY}).json()["snapshots"]
    assert {(one["snapshot"], one["counts"]["total"], one["state"]) for one in listed} == {
        (frozen["snapshot"], 40, "present")
    }
    shown = operate.get(f"/v1/snapshots/{frozen['snapshot'][:6]}").json()
    assert shown["labels"] == frozen["counts"]["labels"]
    assert shown["taxonomy"]["labels"] == ["好评", "差评"]
    told = operate.get("/v1/snapshots").text + answer.text + str(shown)
    assert str(filled.home) not in told
    with filled.engine.connect() as connection:
        event = latest_events(connection, 1)[0]
    assert (event.actor, event.action, event.target) == ("operator", "library.freeze", LIBRARY)
    assert event.details == {"snapshot": frozen["snapshot"]}


def test_two_snapshots_are_compared(operate: httpx.Client, filled: Workshop) -> None:
    before = freeze(operate)
    filled.load(filled.write("b.csv", "text,label\n前台热情又周到,好评\n"), library=LIBRARY)
    after = freeze(operate)
    found = operate.get(f"/v1/snapshots/{before[:8]}/diff/{after[:8]}", params={"examples": 1}).json()
    assert (found["before"], found["after"], found["added"], found["removed"]) == (before, after, 1, 0)
    assert [change["text"] for change in found["examples"]["added"]] == ["前台热情又周到"]
    assert operate.get(f"/v1/snapshots/{before}/diff/{before}").json()["unchanged"] == 40


def test_every_format_can_be_downloaded_as_the_command_writes_it(
    operate: httpx.Client, filled: Workshop, tmp_path: Path
) -> None:
    snapshot = freeze(operate)
    found = find_snapshot(filled.engine, snapshot)
    assert set(KINDS) == set(ExportFormat)
    for number, (file_format, (suffix, media_type)) in enumerate(KINDS.items()):
        answer = operate.get(f"/v1/snapshots/{snapshot}/export", params={"format": file_format.value})
        assert answer.status_code == 200, answer.text
        assert answer.headers["Content-Type"] == media_type
        name = f"{snapshot[:12]}-{file_format.value}.{suffix}"
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}"'
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert int(answer.headers["Content-Length"]) == len(answer.content)
        if file_format in (ExportFormat.XLSX, ExportFormat.HF):  # zips, which hold times
            assert zipfile.ZipFile(io.BytesIO(answer.content)).testzip() is None
            continue
        written = export_snapshot(found, file_format=file_format, out=tmp_path / str(number)).path
        assert answer.content == written.read_bytes()
    assert eventually(lambda: nothing_left(filled))


def test_a_split_is_downloaded_alone_and_a_folder_as_a_zip(operate: httpx.Client, filled: Workshop) -> None:
    snapshot = freeze(operate)
    counts = operate.get(f"/v1/snapshots/{snapshot}").json()["counts"]
    address = f"/v1/snapshots/{snapshot}/export"
    lines = operate.get(address, params={"format": "jsonl", "split": "dev"})
    assert len(lines.text.splitlines()) == counts["dev"]
    assert f'filename="{snapshot[:12]}-dev-jsonl.jsonl"' in lines.headers["Content-Disposition"]
    archive = zipfile.ZipFile(io.BytesIO(operate.get(address, params={"format": "hf"}).content))
    parts = {name.rpartition("/")[2]: name for name in archive.namelist()}
    assert "README.md" in parts
    train = next(name for short, name in parts.items() if short.startswith("train"))
    assert pq.read_table(io.BytesIO(archive.read(train))).num_rows == counts["train"]


def test_snapshots_are_named_by_hash_alone(
    operate: httpx.Client, filled: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = freeze(operate)
    folder = filled.home / "snapshots" / LIBRARY / snapshot
    shutil.copytree(folder, filled.home / "abcdef")  # a snapshot that is not on record
    monkeypatch.chdir(filled.home)
    assert code(operate.get("/v1/snapshots/abcdef")) == (422, "bad_snapshot")
    assert code(operate.get("/v1/snapshots/abcdef/export?format=csv")) == (422, "bad_snapshot")
    assert code(operate.get(f"/v1/snapshots/abcdef/diff/{snapshot}")) == (422, "bad_snapshot")
    for reference in (
        "..",
        "%2e%2e",
        "%2Fetc",
        f"..%2F{snapshot}",
        "abc",
        "a%00bc",
        "ABCDEF",
        "%25%25%25%25",
        "a" * 33,
    ):
        for path in (reference, f"{reference}/export?format=csv", f"{snapshot}/diff/{reference}"):
            status, body = ask_as_written(operate, "GET", f"/v1/snapshots/{path}")
            assert status in (403, 404, 422), path
            assert set(json.loads(body)["error"]) == {"code", "message"}


def test_a_snapshot_that_is_gone_or_damaged_is_told_without_its_folder(operate: httpx.Client, filled: Workshop) -> None:
    snapshot = freeze(operate)
    folder = filled.home / "snapshots" / LIBRARY / snapshot
    rows = folder / "samples.parquet"
    rows.write_bytes(rows.read_bytes()[:-9])
    damaged = operate.get(f"/v1/snapshots/{snapshot}/export?format=csv")
    shutil.rmtree(folder)
    gone = operate.get(f"/v1/snapshots/{snapshot}/export?format=csv")
    for answer in (damaged, gone):
        assert code(answer) == (422, "bad_snapshot")
        assert str(filled.home.resolve()) not in answer.text
        assert snapshot in answer.text
    assert operate.get(f"/v1/snapshots/{snapshot}").json()["state"] == "gone"
    assert nothing_left(filled)


def test_what_can_not_be_frozen_or_shown_is_refused(operate: httpx.Client, filled: Workshop) -> None:
    snapshot = freeze(operate)
    for given in (
        {"test": -0.1},
        {"test": 1},
        {"test": 0.5, "dev": 0.5},
        {"seed": -1},
        {"seed": 2**63},
        {"near": 0.1},
        {"conflicts": "some"},
        {"library": "../酒店"},
        {"library": "酒店\x00"},
        {"library": None},
        {"folder": "/tmp"},
        {"out": "/tmp"},
    ):
        assert code(operate.post("/v1/snapshots", json=FREEZE | given)) == (422, "bad_input"), given
    for text in ('{"test": NaN}', '{"test": Infinity}', '{"test": 1e999}'):
        headers = {"Content-Type": "application/json"}
        assert code(operate.post("/v1/snapshots", content=text, headers=headers)) == (422, "bad_input"), text
    assert code(operate.post("/v1/snapshots", content=b"{")) in ((400, "not_json"), (422, "bad_input"))
    assert code(operate.post("/v1/snapshots", json={"library": "none"})) == (404, "unknown_library")
    assert code(operate.get("/v1/snapshots?library=none")) == (404, "unknown_library")
    address = f"/v1/snapshots/{snapshot}"
    for path in (
        "/v1/snapshots?folder=/tmp",
        f"{address}/export",
        f"{address}/export?format=pickle",
        f"{address}/export?format=csv&split=all",
        f"{address}/export?format=csv&out=/tmp/a.csv",
        f"{address}/diff/{snapshot}?examples=101",
        f"{address}/diff/{snapshot}?examples=-1",
    ):
        assert code(operate.get(path)) == (422, "bad_input"), path


def test_a_client_that_reads_nothing_holds_no_file(
    operate: httpx.Client, filled: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def large(*given: object) -> Path:  # more than the sockets on the way hold
        path = Path(str(given[-1])) / "large.csv"
        with path.open("wb") as file:
            file.truncate(64 << 20)
        return path

    snapshot = freeze(operate)
    monkeypatch.setattr(downloads, "STALL_SECONDS", 0.5)
    monkeypatch.setattr(snapshots, "write_download", large)
    request = f"GET /v1/snapshots/{snapshot}/export?format=csv HTTP/1.1\r\nHost: a\r\n"
    with socket.create_connection(("127.0.0.1", operate.base_url.port), 20) as connection:
        connection.sendall(f"{request}Authorization: {operate.headers['Authorization']}\r\n\r\n".encode())
        assert eventually(lambda: not nothing_left(filled))
        assert eventually(lambda: nothing_left(filled))


def test_a_client_that_hangs_up_leaves_no_file(operate: httpx.Client, filled: Workshop) -> None:
    snapshot = freeze(operate)
    with operate.stream("GET", f"/v1/snapshots/{snapshot}/export?format=csv") as answer:
        assert answer.status_code == 200
    assert eventually(lambda: nothing_left(filled))


def test_only_so_much_long_work_is_done_at_a_time(
    operate: httpx.Client, filled: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = freeze(operate)
    under_way, go_on = threading.Semaphore(0), threading.Event()

    def slow(*given: object, **named: object) -> object:
        under_way.release()
        assert go_on.wait(20)
        return diff_snapshots(*given, **named)

    monkeypatch.setattr(snapshots, "diff_snapshots", slow)
    address = f"/v1/snapshots/{snapshot}/diff/{snapshot}"
    with ThreadPoolExecutor(2) as pool:
        try:
            running = [pool.submit(operate.get, address) for _ in range(2)]
            for _ in running:
                assert under_way.acquire(timeout=20)
            refused = operate.get(address)
            assert code(refused) == (503, "overloaded")
            assert int(refused.headers["Retry-After"]) > 0
            assert operate.get("/v1/snapshots").status_code == 200
        finally:
            go_on.set()
        assert [one.result().status_code for one in running] == [200, 200]
    assert operate.get(address).status_code == 200
