"""Folders and files appear whole or not at all."""

import hashlib
import json
import os
import subprocess
import sys
import threading

import pytest

from model.errors import BadInput
from model.files import (
    CHUNK,
    canonical_json,
    only_process,
    publish,
    read_json,
    sha256_file,
    staging_folder,
    write_json,
)


def test_a_published_folder_has_its_name_and_all_of_its_files(tmp_path):
    with staging_folder(tmp_path / "deep" / "result") as staging:
        (staging / "sub").mkdir()
        (staging / "sub" / "a.txt").write_text("内容")
        assert list((tmp_path / "deep").glob("[!.]*")) == []
        publish(staging, tmp_path / "deep" / "result")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["result"]
    assert (tmp_path / "deep" / "result" / "sub" / "a.txt").read_text() == "内容"
    assert (tmp_path / "deep" / "result").stat().st_mode & 0o777 == 0o755


def test_a_failure_leaves_neither_the_folder_nor_its_staging(tmp_path):
    with pytest.raises(TypeError), staging_folder(tmp_path / "result") as staging:
        write_json(staging / "half.json", {"not JSON": object()})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("make", [lambda path: (path / "x").mkdir(parents=True), lambda path: path.write_text("x")])
def test_what_is_there_already_is_never_replaced(tmp_path, make):
    make(tmp_path / "result")
    with staging_folder(tmp_path / "result") as staging:
        (staging / "new.txt").write_text("new")
        with pytest.raises(BadInput, match="result exists already; give another name"):
            publish(staging, tmp_path / "result")
    assert not (tmp_path / "result" / "new.txt").exists()


def test_of_two_who_publish_at_once_one_wins_whole(tmp_path):
    start, outcomes = threading.Barrier(4), []

    def work(number):
        with staging_folder(tmp_path / "result") as staging:
            for name in ("a", "b"):
                (staging / name).write_text(str(number))
            start.wait()
            try:
                publish(staging, tmp_path / "result")
                outcomes.append(number)
            except BadInput:
                outcomes.append(None)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [number for number in outcomes if number is not None]
    assert {path.read_text() for path in (tmp_path / "result").iterdir()} == {str(winner)}
    assert len(list(tmp_path.iterdir())) == 1


def test_json_that_can_not_be_written_leaves_the_old_file(tmp_path):
    write_json(tmp_path / "a.json", {"标签": "好评"})
    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", {"标签": object()})
    assert read_json(tmp_path / "a.json") == {"标签": "好评"}
    assert "好评" in (tmp_path / "a.json").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_canonical_json_has_one_spelling():
    assert canonical_json({"b": 1, "a": ["中", None]}) == canonical_json({"a": ("中", None), "b": 1})
    assert canonical_json({"b": 1, "a": "中"}) == '{"a":"中","b":1}'.encode()
    assert json.loads(canonical_json([1.5])) == [1.5]


@pytest.mark.parametrize("size", [0, 1, CHUNK, CHUNK + 1])
def test_a_file_hashes_as_its_bytes(tmp_path, size):
    (tmp_path / "file").write_bytes(b"x" * size)
    assert sha256_file(tmp_path / "file") == hashlib.sha256(b"x" * size).hexdigest()


def test_what_a_killed_process_left_is_swept_away_and_what_a_living_one_fills_is_not(tmp_path):
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = tmp_path / f".bundle.partial-{dead.pid}_abc"
    alive = tmp_path / f".bundle.partial-{os.getpid()}_abc"
    other = tmp_path / f".bundle2.partial-{dead.pid}_abc"
    for folder in (left, alive, other):
        folder.mkdir()
    with staging_folder(tmp_path / "bundle"):
        assert not left.exists()
        assert alive.exists()
        assert other.exists()


def test_a_folder_has_one_writer(tmp_path):
    held = (
        "import sys, time; from pathlib import Path; from model.files import only_process\n"
        "with only_process(Path(sys.argv[1])): print('in', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", held, tmp_path / "run"], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "in\n"
        with pytest.raises(BadInput, match="another process is writing"), only_process(tmp_path / "run"):
            pass
        writer.kill()
        writer.wait()
    with only_process(tmp_path / "run"):
        pass
