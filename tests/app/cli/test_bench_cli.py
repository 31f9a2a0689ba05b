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
