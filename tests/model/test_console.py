import json

import pytest

from model import console
from model.console import emit, progress, say, track


def test_json_is_one_line_on_stdout_and_keeps_chinese(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"label": "好评", "count": 2}, as_json=True)
    out, err = capsys.readouterr()
    assert json.loads(out) == {"label": "好评", "count": 2}
    assert "好评" in out
    assert out.count("\n") == 1
    assert not err


def test_people_see_keys_and_values_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"text": "[doge]房间[/b]干净", "counts": {"total": 3}}, as_json=False)
    out = capsys.readouterr().out
    assert "[doge]房间[/b]干净" in out
    assert '{"total": 3}' in out


def test_long_values_are_neither_cut_off_nor_broken(capsys: pytest.CaptureFixture[str]) -> None:
    path = "/数据/" + "很长的文件夹/" * 30 + "评论.xlsx.jsonl"
    emit({"read": 30, "rejects_file": path}, as_json=False)
    assert capsys.readouterr().out == f"read          30\nrejects_file  {path}\n"


def test_messages_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    say("[1/2] 导入")
    out, err = capsys.readouterr()
    assert (out, err) == ("", "[1/2] 导入\n")


def test_a_log_gets_a_line_a_tenth(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "LOG_SECONDS", 0.0)
    assert list(track(range(100), "训练", 100)) == list(range(100))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("训练 10/100")


def test_a_log_is_not_flooded(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("训练", 100) as advance:
        for _ in range(100):
            advance(1)
    assert capsys.readouterr().err == ""
