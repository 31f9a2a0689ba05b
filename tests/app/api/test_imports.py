"""POST /v1/libraries/{name}/import over a real socket, on both databases: good files, bad ones, and bad intent."""

import errno
import gzip
import io
import json
import lzma
import os
import socket
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import quote, urlencode

import httpx
import openpyxl
import pytest

from app.api import imports, unpacking, uploads
from app.api.import_query import FileFormat
from app.library.formats import Format
from app.settings import Settings
from app.store.audit import latest_events
from app.store.people import Scope
from app.store.tables import label_events, samples, sources
from tests.app.api.servers import ask_as_written, read_answer
from tests.app.library.workshop import Workshop

MOST = 1 << 20  # bytes of an upload here
ROWS = "内容,类别\n房间很大,好评\n早餐凉了,差评\n房间很大,好评\n"
COLUMNS = {"filename": "评论.csv", "text": "内容", "label": "类别"}
PATH = "/v1/libraries/hotel/import"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Those of a server that takes small uploads."""
    return settings.model_copy(update={"max_upload_bytes": MOST})


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def nothing_left(workshop: Workshop) -> bool:
    """No sample, no file of an upload."""
    scratch = workshop.home / "scratch"
    return workshop.count(samples) == 0 and not (scratch.exists() and list(scratch.iterdir()))


def test_a_file_comes_in_once_and_its_name_stays_with_its_samples(operate: httpx.Client, workshop: Workshop) -> None:
    answer = operate.post(PATH, params=COLUMNS, content=ROWS.encode())
    assert answer.status_code == 200
    assert answer.json() == {
        "read": 3,
        "added": 2,
        "duplicates": 1,
        "rejected": 0,
        "first_rejects": [],
        "rejects_file": None,
        "several_in_one": None,
        "left_out": [],
    }
    assert operate.post(PATH, params=COLUMNS, content=ROWS.encode()).json()["added"] == 0
    with workshop.engine.connect() as connection:
        assert {row.name for row in connection.execute(sources.select())} == {"评论.csv"}
        assert {row.actor_kind for row in connection.execute(label_events.select())} == {"import"}
        event = latest_events(connection, 1)[0]
    assert (event.actor, event.action, event.target) == ("operator", "library.import", "hotel")
    assert (event.details["files"], event.details["added"]) == ("评论.csv", "0")
    assert not list((workshop.home / "scratch").iterdir())


def test_the_command_line_and_http_make_the_same_snapshot(operate: httpx.Client, workshop: Workshop) -> None:
    operate.post(PATH, params=COLUMNS | {"split": "train"}, content=ROWS.encode())
    workshop.load(workshop.write("b.csv", ROWS), library="other", text="内容", label="类别", split="train")
    assert workshop.freeze("hotel").snapshot.hash == workshop.freeze("other").snapshot.hash


def test_rejected_rows_can_be_fetched(operate: httpx.Client) -> None:
    answer = operate.post(PATH, params=COLUMNS, content=f"{ROWS},好评\n".encode()).json()
    assert (answer["rejected"], answer["read"]) == (1, 4)
    assert answer["first_rejects"][0].startswith("评论.csv, line 5: ")
    rejects = operate.get(answer["rejects_file"])
    assert (rejects.status_code, rejects.headers["X-Content-Type-Options"]) == (200, "nosniff")
    assert "attachment" in rejects.headers["Content-Disposition"]
    (row,) = map(json.loads, rejects.text.splitlines())
    assert (row["file"], row["line"]) == ("评论.csv", 5)


def test_only_rejects_of_imports_can_be_fetched(operate: httpx.Client, workshop: Workshop) -> None:
    name = operate.post(PATH, params=COLUMNS, content=f"{ROWS},好评\n".encode()).json()["rejects_file"].split("/")[-1]
    workshop.load(workshop.write("other.csv", "text,label\n送货快,好评\n"), library="other")
    rejects = workshop.home / "rejects"
    (workshop.home / "secret-20260101T000000000000Z.jsonl").write_text("秘密")
    (rejects / "hotel-notes.txt").write_text("秘密")
    (rejects / "hotel-link-20260101T000000000000Z.jsonl").symlink_to("/etc/passwd")
    for file in (
        "..%2Fwenlei.db",
        "%2e%2e%2fsecret-20260101T000000000000Z.jsonl",
        "..%5Csecret-20260101T000000000000Z.jsonl",
        "%2Fetc%2Fpasswd",
        "hotel-notes.txt",
        "hotel-link-20260101T000000000000Z.jsonl",
        "hotel-none-20260101T000000000000Z.jsonl",
        "hotel-a%00-20260101T000000000000Z.jsonl",
        f"hotel-{'a' * 300}-20260101T000000000000Z.jsonl",
        f".{name}.partial",
        ".",
        "..",
        "../../../wenlei.db",
        "%2e%2e",
        "",
    ):
        status, body = ask_as_written(operate, "GET", f"/v1/libraries/hotel/rejects/{file}")
        assert status in (404, 422), file
        assert json.loads(body)["error"]["code"] in ("unknown_route", "bad_input"), file
    assert code(operate.get(f"/v1/libraries/other/rejects/{name}")) == (422, "bad_input")
    assert code(operate.get(f"/v1/libraries/none/rejects/{name}")) == (404, "unknown_library")


def test_a_dry_run_shows_guesses_and_writes_nothing(operate: httpx.Client, workshop: Workshop) -> None:
    answer = operate.post(PATH, params={"filename": "评论.csv", "dry_run": "true"}, content=ROWS.encode()).json()
    (table,) = answer["tables"]
    assert [(column["name"], column["role"]) for column in table["columns"]] == [("内容", "text"), ("类别", "label")]
    assert (table["labels"], table["duplicates"], table["problem"]) == ({"好评": 2, "差评": 1}, 1, None)
    assert nothing_left(workshop)
    assert operate.get("/v1/libraries").json() == {"libraries": []}


def _zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("内/评论.csv", ROWS)
        archive.writestr("readme.md", "说明")
    return stream.getvalue()


def _workbook() -> bytes:
    book, stream = openpyxl.Workbook(), io.BytesIO()
    for row in ROWS.splitlines():
        book.active.append(row.split(","))
    book.create_sheet("说明").append(["没有这些列"])
    book.save(stream)
    return stream.getvalue()


def test_archives_workbooks_and_encodings_work_as_from_the_command_line(operate: httpx.Client) -> None:
    for number, (filename, content, left_out) in enumerate(
        (
            ("评论.csv.gz", gzip.compress(ROWS.encode()), []),
            ("评论.zip", _zip(), ["评论.zip/readme.md"]),
            ("评论.xlsx", _workbook(), ["评论.xlsx/说明"]),
            ("评论.csv", ROWS.encode("gb18030"), []),
        )
    ):
        path = f"/v1/libraries/library{number}/import"
        answer = operate.post(path, params=COLUMNS | {"filename": filename}, content=content)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["added"], answer.json()["left_out"]) == (2, left_out)


def test_classes_are_declared_in_their_order(operate: httpx.Client, workshop: Workshop) -> None:
    rows = "text,label\n房间很大,1\n早餐凉了,0\n送货快,2\n"
    given = {"filename": "a.csv", "text": "text", "label": "label", "class": ["差评", "好评"]}
    answer = operate.post(PATH, params=given, content=rows.encode()).json()
    assert (answer["added"], answer["rejected"]) == (2, 1)
    assert workshop.freeze("hotel").snapshot.taxonomy.labels == ("差评", "好评")
    twice = operate.post(PATH, params=given | {"class": ["好评", "好评"]}, content=rows.encode())
    assert code(twice) == (422, "bad_input")
    assert "class 2: '好评' stands twice" in twice.json()["error"]["message"]


def test_every_format_that_a_file_can_have_is_taken(operate: httpx.Client) -> None:
    assert set(FileFormat.__args__) == {one.value for one in Format} - {"hf", "folder"}


def test_no_hub_no_folder_and_no_path_can_be_named(operate: httpx.Client, workshop: Workshop) -> None:
    secret = workshop.write("secret.csv", ROWS)
    for given in (
        {"format": "hf"},
        {"format": "folder"},
        {"filename": str(secret)},
        {"filename": "../secret.csv"},
        {"filename": "..\\secret.csv"},
        {"filename": "%2e%2e/secret.csv"},
        {"filename": ".."},
        {"filename": "."},
        {"filename": ""},
        {"filename": ".hidden.csv"},
        {"filename": "a/b.csv"},
        {"filename": "a\x00.csv"},
        {"filename": "a\n.csv"},
        {"filename": "长" * 100 + ".csv"},
        {"label_names": str(secret)},
        {"path": str(secret)},
        {"dryrun": "true"},
        {"text": "内容\x00"},
        {"label_sep": "\x00"},
        {"task": "some"},
        {"class": ["a"] * 1001},
        {"encoding": "no-such"},
        {"encoding": "zlib_codec"},
        {"encoding": "punycode"},
        {"encoding": "undefined"},
        {"encoding": "a\x00b"},
        {"encoding": "../../etc/passwd"},
        {"text": "没有这一列"},
    ):
        answer = operate.post(PATH, params=COLUMNS | given, content=ROWS.encode())
        assert code(answer) == (422, "bad_input"), given
        assert str(workshop.home) not in answer.text
    for name in ("..", "%2e%2e", "a%2fb", "a%00", "a b", "長" * 65):
        path = f"/v1/libraries/{quote(name, safe='%')}/import?{urlencode(COLUMNS)}"
        assert ask_as_written(operate, "POST", path)[0] in (403, 404, 422), name
    assert nothing_left(workshop)


def test_bad_files_are_refused_without_the_place_where_they_lay(operate: httpx.Client, workshop: Workshop) -> None:
    for filename, content in (
        ("a.csv", b""),
        ("a.zip", b"PK\x03\x04 no archive"),
        ("a.zip", b""),
        ("a.gz", b"\x1f\x8b\x08 broken"),
        ("a.xlsx", b"PK\x03\x04"),
        ("a.parquet", b"PAR1 broken PAR1"),
        ("a.json", b"[{]"),
        ("a.csv", bytes(range(256)) * 50),
    ):
        answer = operate.post(PATH, params=COLUMNS | {"filename": filename}, content=content)
        assert code(answer) == (422, "bad_input"), filename
        assert "scratch" not in answer.text
        assert str(workshop.home) not in answer.text
    assert nothing_left(workshop)


def test_what_is_too_large_is_refused_before_or_while_it_comes(operate: httpx.Client, workshop: Workshop) -> None:
    def on_and_on() -> Iterator[bytes]:
        for _ in range(10):
            yield b"x" * (MOST // 4)

    for content in (b"x" * (MOST + 1), on_and_on()):
        assert code(operate.post(PATH, params=COLUMNS, content=content)) == (413, "body_too_large")
    assert nothing_left(workshop)
    assert operate.post(PATH, params=COLUMNS, content=ROWS.encode()).status_code == 200


def test_what_unpacks_to_more_than_may_be_sent_is_refused(
    operate: httpx.Client, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = ROWS.encode() + "房间很大,好评\n".encode() * (MOST // 10)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as parts:
        for number in range(3):  # of which each would do
            parts.writestr(f"{number}.csv", large[: MOST // 2])
    for filename, content in (
        ("a.csv.gz", gzip.compress(large)),
        ("a.csv.xz", lzma.compress(large)),
        ("a.zip", archive.getvalue()),
    ):
        answer = operate.post(PATH, params=COLUMNS | {"filename": filename}, content=content)
        assert code(answer) == (422, "bad_input"), filename
        assert f"{filename} unpacks to more than 1 MiB" in answer.json()["error"]["message"]
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as parts:
        for number in range(unpacking.MOST_FILES + 1):
            parts.writestr(f"{number}.csv", ROWS)
    answer = operate.post(PATH, params=COLUMNS | {"filename": "a.zip"}, content=many.getvalue())
    assert code(answer) == (422, "bad_input")
    assert "1,001 files" in answer.json()["error"]["message"]
    monkeypatch.setattr(unpacking, "MOST_OF_DIRECTORY", 50_000)  # what is read at once, where it is not true
    for filename in ("a.zip", "a.xlsx"):
        answer = operate.post(PATH, params=COLUMNS | {"filename": filename}, content=many.getvalue())
        assert code(answer) == (422, "bad_input")
        assert f"{filename} has too many files in it" in answer.json()["error"]["message"]
    monkeypatch.undo()
    monkeypatch.setattr(unpacking, "MOST_OF_WORKBOOK", 1000)
    for filename, content in (("a.xlsx", _workbook()), ("a.xlsx.gz", gzip.compress(_workbook())), ("a", _workbook())):
        answer = operate.post(PATH, params=COLUMNS | {"filename": filename}, content=content)
        assert code(answer) == (422, "bad_input"), filename
        assert "save it as CSV" in answer.json()["error"]["message"]
    assert nothing_left(workshop)


def test_a_refusal_is_heard_by_a_client_that_still_sends(operate: httpx.Client, workshop: Workshop) -> None:
    for params in (COLUMNS | {"format": "hf"}, {"text": "内容"}):
        assert code(operate.post(PATH, params=params, content=b"x" * (8 << 20))) == (422, "bad_input")
    assert nothing_left(workshop)


@contextmanager
def half_sent(client: httpx.Client, body: bytes, *headers: str) -> Iterator[socket.socket]:
    """A connection on which an import has begun, and whose body has not ended."""
    query = urlencode(COLUMNS)
    lines = [
        f"POST {PATH}?{query} HTTP/1.1",
        "Host: wenlei",
        f"Authorization: {client.headers['Authorization']}",
        *headers,
    ]
    with socket.create_connection(("127.0.0.1", client.base_url.port), 20) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        yield connection


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def uploading(workshop: Workshop) -> bool:
    """A file of an upload is there."""
    return any((workshop.home / "scratch").glob("*/*"))


@pytest.mark.parametrize(
    ("framing", "body"),
    [
        ("Content-Length: 5000", ROWS.encode()),
        ("Transfer-Encoding: chunked", f"{len(ROWS.encode()):x}\r\n{ROWS}\r\n".encode()),
    ],
)
def test_an_upload_that_is_cut_off_leaves_nothing(
    operate: httpx.Client, workshop: Workshop, framing: str, body: bytes
) -> None:
    with half_sent(operate, body, framing):
        assert eventually(lambda: uploading(workshop))
    assert eventually(lambda: nothing_left(workshop))
    with workshop.engine.connect() as connection:
        assert "library.import" not in {event.action for event in latest_events(connection, 100)}
    assert not (workshop.home / "rejects").exists()


def test_a_client_that_stops_sending_is_given_up(
    operate: httpx.Client, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "PIECE_SECONDS", 0.3)
    with half_sent(operate, ROWS.encode(), "Content-Length: 5000") as connection:
        answer = read_answer(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"slow_body" in answer
    assert nothing_left(workshop)


def test_a_client_that_sends_drop_by_drop_is_given_up(
    operate: httpx.Client, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "PIECE_SECONDS", 0.5)
    with half_sent(operate, b"", "Content-Length: 5000") as connection:
        started = time.monotonic()
        with suppress(OSError):
            while time.monotonic() < started + 5:
                connection.sendall(b"x")
                time.sleep(0.1)
                connection.setblocking(False)
                with suppress(BlockingIOError):
                    if connection.recv(1, socket.MSG_PEEK):
                        break
                connection.setblocking(True)
        assert time.monotonic() < started + 4
        connection.setblocking(True)
        assert read_answer(connection).startswith(b"HTTP/1.1 408 ")
    assert nothing_left(workshop)


def test_a_wrong_length_is_no_file(operate: httpx.Client, workshop: Workshop) -> None:
    for framing in ("Content-Length: -1", "Content-Length: many", f"Content-Length: {10**30}"):
        with half_sent(operate, ROWS.encode(), framing) as connection:
            connection.shutdown(socket.SHUT_WR)
            answer = read_answer(connection)
        assert not answer or answer.split()[1] in (b"400", b"413"), framing
    assert eventually(lambda: nothing_left(workshop))


def test_only_so_many_imports_run_at_a_time_and_classifying_goes_on(operate: httpx.Client, workshop: Workshop) -> None:
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(half_sent(operate, b"text", "Content-Length: 5000"))
        assert eventually(lambda: len(list((workshop.home / "scratch").glob("*/*"))) == 2)
        refused = operate.post(PATH, params=COLUMNS, content=ROWS.encode())
        assert code(refused) == (503, "overloaded")
        assert int(refused.headers["Retry-After"]) > 0
        assert code(operate.post("/v1/classify", json={"texts": ["房间很大"]})) == (404, "unknown_model")
        assert operate.get("/v1/libraries").status_code == 200
    assert eventually(lambda: nothing_left(workshop))
    assert operate.post(PATH, params=COLUMNS, content=ROWS.encode()).status_code == 200


def test_two_files_that_come_at_once_both_come_in(operate: httpx.Client, workshop: Workshop) -> None:
    def send(name: str) -> int:
        rows = "".join(f"{name}楼第{number}间,好评\n" for number in range(2000))
        content = f"内容,类别\n{rows}".encode()
        return operate.post(PATH, params=COLUMNS | {"filename": f"{name}.csv"}, content=content).json()["added"]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(send, ("东", "西"))) == [2000, 2000]
    assert workshop.count(samples) == 4000


def test_a_full_disk_is_told_without_its_address(
    operate: httpx.Client, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(workshop.home))

    monkeypatch.setattr(imports, "save_body", full)
    answer = operate.post(PATH, params=COLUMNS, content=ROWS.encode())
    assert code(answer) == (507, "no_room")
    assert str(workshop.home) not in answer.text
    assert nothing_left(workshop)


def test_what_a_killed_server_left_is_swept_away_after_a_day(operate: httpx.Client, workshop: Workshop) -> None:
    old, new = workshop.home / "scratch" / "old", workshop.home / "scratch" / "new"
    for folder in (old, new):
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text(ROWS, encoding="utf-8")
    for path in (old / "a.csv", old):
        os.utime(path, (0, 0))
    assert operate.post(PATH, params=COLUMNS, content=ROWS.encode()).status_code == 200
    assert (old.exists(), new.exists()) == (False, True)


def test_who_may_only_classify_imports_nothing(client_of: Callable[[Scope], httpx.Client], workshop: Workshop) -> None:
    answer = client_of(Scope.CLASSIFY).post(PATH, params=COLUMNS, content=b"x" * (8 << 20))
    assert code(answer) == (403, "forbidden")
    assert nothing_left(workshop)


def test_only_an_admin_declares_the_classes_of_a_library_that_is_there(
    operate: httpx.Client, admin: httpx.Client
) -> None:
    given = {"filename": "a.csv", "text": "text", "label": "label"}
    rows = "text,label\n房间大,好评\n早餐凉,差评\n".encode()
    assert operate.post(PATH, params=given, content=rows).status_code == 200
    declared = given | {"class": ["差评", "好评"]}
    refused = operate.post(PATH, params=declared, content=rows)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    assert admin.post(PATH, params=declared, content=rows).status_code == 200
