"""`wenlei library sweeps` lists what machines decided, and takes it back in somebody's name."""

import os
from pathlib import Path

import pytest

from app.cli import main
from app.library.sweeping import apply_sweep
from app.people.accounts import create_user
from app.settings import load_settings
from app.store.database import open_database
from app.store.people import Scope
from app.store.sweeps import SweptLabels
from model.text import sample_id
from tests.app.cli.conftest import Call, Refusal


def test_sweeps_are_listed_and_undone(
    home: Path, call: Call, refusal: Refusal, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir(parents=True, exist_ok=True)
    file = home / "a.csv"
    file.write_text("text,label\n房间很大,好评\n早餐凉了,好评\n隔音很差,差评\n", encoding="utf-8")
    call("import", os.fspath(file), "--text", "text", "--label", "label")
    with open_database(load_settings()) as engine:
        create_user(engine, "标注员甲", Scope.OPERATE, actor="root")
        apply_sweep(
            engine,
            library="default",
            kind="drop",
            actor="linear@1a2b3c4d5e6f",
            rows=[SweptLabels(sample_id("早餐凉了"), (), 0.9)],
            judged={sample_id("早餐凉了"): ("好评",)},
            asked={},
            outcome={},
            by="标注员甲",
            version=1,
        )
    assert [sweep["kind"] for sweep in call("sweeps")["sweeps"]] == ["drop"]
    at = call("sweeps")["sweeps"][0]["at"]
    with pytest.raises(SystemExit):
        main(["library", "sweeps"])
    told = capsys.readouterr().out
    assert at[:16].replace("T", " ") in told  # whole in 80 columns
    assert "…" not in told
    assert call("history", sample_id("早餐凉了"))["labels"] is None
    assert "go together" in refusal("sweeps", "--undo", "1")
    assert "no sweep 7" in refusal("sweeps", "--undo", "7", "--by", "标注员甲")
    assert call("sweeps", "--undo", "1", "--by", "标注员甲")["changed"] == 1
    assert call("history", sample_id("早餐凉了"))["labels"] == ["好评"]
    assert call("sweeps")["sweeps"][0]["undone_by"] == 2
