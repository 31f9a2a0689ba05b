"""`wenlei models`, and a server that serves what is live."""

import json
import os
from pathlib import Path

import pytest
from bundles import SENTIMENT, tiny_bundle

from app.cli import main
from app.cli.serve import _live
from model.errors import UnknownModel
from model.snapshot import Snapshot, write_snapshot
from model.text import Normaliser, sample_id
from model.types import Sample, Split


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    texts = ("房间好", "早餐差", "价格便宜", "服务员态度坏")
    samples = [Sample(sample_id(text), text, None, ("好评",), Split.TEST) for text in texts]
    samples.sort(key=lambda sample: sample.id)
    return write_snapshot(samples, taxonomy=SENTIMENT, normaliser=Normaliser(), folder=tmp_path / "snapshots")


def test_a_bundle_is_promoted_shown_rolled_back_and_served_by_its_name(
    home: Path, snapshot: Snapshot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(*arguments: str) -> dict:  # type: ignore[type-arg]
        with pytest.raises(SystemExit) as ended:
            main(["models", *arguments, "--json"])
        out, err = capsys.readouterr()
        assert ended.value.code == 0, err
        answer: dict = json.loads(out)  # type: ignore[type-arg]
        return answer

    bundles = [tiny_bundle(tmp_path / name, name=name) for name in ("one", "two")]
    for bundle in bundles:
        move = call("promote", os.fspath(bundle.path), "--snapshot", os.fspath(snapshot.path), "--note", "试")
        assert (move["model"], move["alias"], move["version"]) == ("default", "champion", bundle.version)
        assert _live(["default"]) == [bundle.path]
    assert [model["bundle"] for model in call("list")["models"]] == ["two"]
    assert [move["number"] for move in call("show", "default")["moves"]] == [2, 1]
    assert call("rollback", "default")["version"] == bundles[0].version
    assert _live(["default@champion"]) == [bundles[0].path]
    with pytest.raises(UnknownModel):
        _live(["default@challenger"])
    with pytest.raises(SystemExit):
        main(["models", "show", "default"])
    shown = capsys.readouterr().out
    assert "rollback" in shown
    assert bundles[0].version in shown.replace("\n", "")


def test_what_is_not_there_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["show", "评论"], ["rollback", "评论"]):
        with pytest.raises(SystemExit) as ended:
            main(["models", *arguments])
        assert ended.value.code == 2
        assert "there is no 评论@champion; wenlei models list" in capsys.readouterr().err
