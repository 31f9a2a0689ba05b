"""`wenlei library label --bundle`: the gate as a script calls it, as people read it, and what it refuses."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from model.types import Task, Taxonomy
from tests.gating import keyword_bundle, made_up

Call = Callable[..., dict[str, Any]]
Refusal = Callable[..., str]
WORDS = {"好评": "好", "差评": "差"}
GATE = ("label", "--bundle", "bundle", "--by", "标注员甲", "--max-error", "0.05")


@pytest.fixture
def hotel(home: Path, call: Call, capsys: pytest.CaptureFixture[str]) -> Path:
    """Three hundred samples to calibrate on, a hundred that nobody has labelled, and a model."""
    rows = [(*row, "train") for row in made_up(20, WORDS, seed=1)] + [
        (*row, "test") for row in made_up(300, WORDS, seed=3)
    ]
    with Path("a.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label", "split"), *rows])
    Path("pool.csv").write_text("text\n" + "\n".join(text for text, _ in made_up(100, WORDS, seed=4)) + "\n")
    call("import", "a.csv", "--text", "text", "--label", "label", "--split", "split")
    frozen = call("snapshot")["snapshot"]
    call("import", "pool.csv", "--text", "text")
    taxonomy = Taxonomy(Task.SINGLE, tuple(dict.fromkeys(label for _, label, _ in rows)))
    keyword_bundle(Path("bundle"), taxonomy=taxonomy, words=WORDS, snapshot=frozen)
    with pytest.raises(SystemExit):
        main(["user", "create", "标注员甲"])
    capsys.readouterr()
    return home


def test_a_dry_run_tells_and_the_real_run_does_it_and_says_how_to_take_it_back(hotel: Path, call: Call) -> None:
    looked = call(*GATE, "--dry-run")
    assert (looked["dry_run"], looked["sweep"], looked["queued"], looked["undo"]) == (True, None, None, None)
    assert call("sweeps")["sweeps"] == []
    done = call(*GATE, "--note", "第一批")
    assert (done["accepted"], done["pool"]) == (looked["accepted"], 100)
    assert done["accepted"] > 50
    assert done["coverage"] == pytest.approx(done["accepted"] / 100)
    assert done["queued"] == 100 - done["accepted"]
    assert "with confidence 0.95, at most 0.05 of the accepted labels are wrong" in done["guarantee"]
    (sweep,) = call("sweeps")["sweeps"]
    assert (sweep["kind"], sweep["sweep"], sweep["by"]) == ("gate", done["sweep"], "标注员甲")
    assert sweep["note"].startswith("第一批; ")
    assert sweep["outcome"]["rules"] == done["rules"]
    undo = done["undo"].replace("NAME", "标注员甲").split()[2:]
    assert call(*undo)["changed"] == done["accepted"]


def test_a_person_reads_what_is_guaranteed_and_on_what_ground(hotel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["library", *GATE, "--per-class", "--confidence", "0.9", "--dry-run", "--max-error", "0.01"])
    out, err = capsys.readouterr()
    assert "未写入 nothing was written" in out
    assert "calibration samples, and it takes at least 230 without an error" in out.replace("\n", "")
    assert "2 classes" in err
    with pytest.raises(SystemExit) as ended:
        main(["library", *GATE, "--no-review"])
    out, err = capsys.readouterr()
    assert ended.value.code == 0, err
    for told in ("有 0.95 的把握", "前提 assumption", "阈值 threshold", "验收 accepted", "整批撤销", "p 0."):
        assert told in out
    assert "送复核" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("label", "--bundle", "bundle", "--by", "标注员甲"), "--bundle needs --max-error"),
        (("label", "--by", "标注员甲"), "or --none where no class fits, or --bundle and --max-error"),
        (("label", "房间大", "--by", "标注员甲"), "give a sample and its labels"),
        (
            ("label", "房间大", "好评", "--by", "标注员甲", "--max-error", "0.1"),
            "--max-error: only for labelling by a model",
        ),
        (("label", "a1b2", "好评", "--by", "标注员甲", "--dry-run"), "--dry-run: only for labelling by a model"),
        (("label", "a1b2", "好评", "--by", "标注员甲", "--bundle", "bundle"), "a sample and --bundle are both given"),
        ((*GATE, "--max-error", "0"), "max error 0: give a share between 0 and 1"),
        ((*GATE, "--confidence", "1"), "confidence 1: give one from 0.5"),
        ((*GATE, "--split", "train"), "--split train: the model was trained on it"),
        ((*GATE, "--split", "dev"), "has no samples in dev"),
        ((*GATE, "--by", "没有这人"), "没有这人"),
        ((*GATE, "--calibration", "ffff"), "no snapshot on record begins with ffff"),
        ((*GATE, "--library", "other"), "there is no library 'other'"),
        ((*GATE, "--precision", "int8"), "has no int8 model"),
        ((*GATE, "--bundle", "nowhere"), "nowhere is not a bundle"),
    ],
)
def test_what_can_not_be_done_is_told_in_one_line(
    hotel: Path, call: Call, refusal: Refusal, arguments: tuple[str, ...], message: str
) -> None:
    assert message in refusal(*arguments)
    assert call("sweeps")["sweeps"] == []
