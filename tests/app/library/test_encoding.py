"""Encodings: found out, or checked, with the place of what doesn't fit."""

from pathlib import Path

import pytest

from app.library.encoding import check_encoding, detect_encoding
from app.library.sources import Source
from model.errors import BadInput

TEXT = "这家店的点心很好吃，服务也周到。\n下次还来！\n价格略贵，环境安静。\n"


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("gbk", "gb18030"),
        ("gb18030", "gb18030"),
    ],
)
def test_the_encoding_is_found_out(tmp_path: Path, encoding: str, expected: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(TEXT.encode(encoding))
    assert detect_encoding(Source(path).open, name="a.txt") == expected


@pytest.mark.parametrize("text", ["這家店的點心很好吃\n服務也很周到\n", "颱風警報", "股匯雙漲\n"])
def test_big5_is_not_taken_for_gb18030_which_reads_it_too(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode("big5"))
    path.read_bytes().decode("gb18030")
    assert detect_encoding(Source(path).open, name="a.txt") == "big5hkscs"


def test_traditional_characters_in_gbk_stay_gb18030(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("這家店的點心很好吃\n服務也很周到\n".encode("gbk"))
    assert detect_encoding(Source(path).open, name="a.txt") == "gb18030"


def test_utf16_big_endian_is_known_by_its_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xfe\xff" + TEXT.encode("utf-16-be"))
    assert detect_encoding(Source(path).open, name="a.txt") == "utf-16"


def test_utf8_with_few_broken_lines_is_still_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(TEXT.encode() + b"\xff\xfe broken\n")
    assert detect_encoding(Source(path).open, name="a.txt") == "utf-8"


def test_a_long_line_is_judged_by_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"[" + "很好，".encode() * 300_000 + b"\xff]")
    assert detect_encoding(Source(path).open, name="a.json") == "utf-8"


def test_a_wrong_encoding_is_told_with_line_and_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("好\n".encode() + "坏".encode("gbk"))
    with pytest.raises(BadInput, match=r"a\.txt, line 2, byte 5 \(0xbb\) is not utf-8"):
        check_encoding(Source(path).open, "utf-8", name="a.txt")


@pytest.mark.parametrize("encoding", ["utf-99", "base64"])
def test_an_encoding_that_does_not_exist_is_told(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(TEXT, encoding="utf-8")
    with pytest.raises(BadInput, match=encoding):
        check_encoding(Source(path).open, encoding, name="a.txt")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(bytes(range(256)) * 40)
    with pytest.raises(BadInput, match="--encoding"):
        detect_encoding(Source(path).open, name="a.txt")
