"""Sources: files on their own and in archives; bombs and broken archives refused."""

import gzip
import lzma
import zipfile
from pathlib import Path

import pytest

from app.library import sources
from app.library.sources import Source, find_sources
from model.errors import BadInput


def read(source: Source) -> bytes:
    with source.open() as stream:
        return stream.read()


def test_every_data_file_of_a_zip_is_found_and_nothing_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in ("b.csv", "a/评论.tsv", "readme.txt", "c.csv.gz", "__MACOSX/b.csv", ".hidden.csv", "a/"):
            archive.writestr(name, name)
    skipped: list[str] = []
    found = find_sources([tmp_path / "all.zip"], on_skipped=skipped.append)
    assert [(source.name, source.suffix) for source in found] == [
        ("all.zip/a/评论.tsv", ".tsv"),
        ("all.zip/b.csv", ".csv"),
    ]
    assert read(found[0]) == "a/评论.tsv".encode()
    assert skipped == ["all.zip/c.csv.gz", "all.zip/readme.txt"]


def test_a_zip_that_has_a_name_twice_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.csv", "一")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a.csv", "二")
    with pytest.raises(BadInput, match=r"has 2 files a\.csv in it"):
        find_sources([tmp_path / "a.zip"])


def test_a_zip_packed_in_an_unknown_way_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "text\n很好\n")
    deflate64 = (9).to_bytes(2, "little")
    packed = bytearray(path.read_bytes())
    packed[8:10] = deflate64  # in the file's own header, and in the directory at the end
    entry = packed.index(b"PK\x01\x02")
    packed[entry + 10 : entry + 12] = deflate64
    path.write_bytes(packed)
    with pytest.raises(BadInput, match="compression method is not supported; unpack it first"):
        read(find_sources([path])[0])


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_packed_files_are_opened_and_broken_ones_told(tmp_path: Path, suffix: str, pack: object) -> None:
    path = tmp_path / f"a.csv{suffix}"
    packed = pack("很好,好评\n".encode() * 10_000)  # type: ignore[operator]
    path.write_bytes(packed)
    assert Source(path).suffix == ".csv"
    assert len(read(Source(path))) == len("很好,好评\n".encode()) * 10_000
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(BadInput, match="archive is broken"):
        read(Source(path))


def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "HARMLESS_BYTES", 1 << 20)
    (tmp_path / "bomb.txt.gz").write_bytes(gzip.compress(b"0" * (4 << 20)))
    with pytest.raises(BadInput, match="times its size"):
        read(Source(tmp_path / "bomb.txt.gz"))
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.txt", b"0" * (4 << 20))
    with pytest.raises(BadInput, match="times its size"):
        find_sources([tmp_path / "bomb.zip"])


def test_paths_that_hold_no_data_are_told(tmp_path: Path) -> None:
    (tmp_path / "broken.zip").write_bytes(b"PK no zip")
    with zipfile.ZipFile(tmp_path / "none.zip", "w") as archive:
        archive.writestr("readme.md", "")
    for name, message in {
        ".": "is a folder",
        "no.csv": "not exist",
        "broken.zip": "broken",
        "none.zip": "no data",
    }.items():
        with pytest.raises(BadInput, match=message):
            find_sources([tmp_path / name])


def test_progress_hears_of_every_byte_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 4096))
    heard: list[int] = []
    with Source(path).open(heard.append) as stream:
        stream.read()
    assert sum(heard) == path.stat().st_size


def test_progress_over_a_zip_does_not_run_past_its_end(tmp_path: Path) -> None:
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(5):
            archive.writestr(f"{number}.csv", bytes(range(256)) * 1024)
    heard: list[int] = []
    for source in find_sources([path]):
        with source.open(heard.append) as stream:
            stream.read()
    assert min(heard) >= 0
    assert sum(heard) == pytest.approx(path.stat().st_size, rel=0.01)
    assert sum(heard) <= path.stat().st_size
