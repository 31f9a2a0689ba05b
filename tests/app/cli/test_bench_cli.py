import json
from pathlib import Path

import pytest

from app.cli import main
from tests.bundles import tiny_bundle


def test_the_figures_come_as_a_table_or_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tiny_bundle(tmp_path / "b").path)
    for arguments in (["--json"], []):
        with pytest.raises(SystemExit) as left:
            main(["bench", "--bundle", path, "--runs", "3", "--tokens", "12", *arguments])
        assert not left.value.code
    out = capsys.readouterr().out
    report, table = out.split("\n", 1)
    assert json.loads(report)["precisions"].keys() == {"fp32"}
    assert "fp32" in table
    assert "p99 ms" in table


def test_the_texts_of_a_file_are_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tiny_bundle(tmp_path / "b").path)
    file = tmp_path / "texts.txt"
    file.write_text("房间很干净\n早餐很好，价格便宜\n服务员态度好\n")
    with pytest.raises(SystemExit) as left:
        main(["bench", "--bundle", path, "--runs", "3", "--file", str(file), "--json"])
    assert not left.value.code
    assert json.loads(capsys.readouterr().out)["tokens"] == 8  # of the middle one, with [CLS] and [SEP]
    file.write_text("")
    with pytest.raises(SystemExit) as left:
        main(["bench", "--bundle", path, "--file", str(file)])
    assert left.value.code == 2
    assert "holds no texts" in capsys.readouterr().err
