"""`wenlei library doctor`: as JSON, as lines, into review, and when refused."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from app.people.accounts import create_user
from app.settings import load_settings
from app.store.database import open_database
from app.store.people import Scope
from model.snapshot import open_snapshot
from tests.judged import sure_run

Call = Callable[..., dict[str, Any]]
Refusal = Callable[..., str]
WHATS = ("房间", "早餐", "前台", "电梯", "泳池", "停车场", "走廊", "空调", "毛巾", "窗户")
HOWS = ("让人很满意", "真该好好修一修", "比照片里漂亮", "离得太远了", "天天有人打扫", "吵得睡不着", "价钱公道", "漏水")
ROWS = """text,label
房间打扫得很干净床也很舒服,好评
房间打扫得很干净床也很舒服呢,差评
前台办理入住排了半个小时的队,差评
早餐的品种实在是太少了一点,差评
The breakfast was really good,好评
"""


@pytest.fixture
def hotel(home: Path, call: Call) -> Path:
    Path("a.csv").write_text(ROWS, encoding="utf-8")
    call("import", "a.csv", "--text", "text", "--label", "label")
    return home


def test_everything_that_was_found_comes_as_json_and_as_a_report(hotel: Path, call: Call) -> None:
    answer = call("doctor")
    kinds = ["duplicates", "leakage", "conflicts", "sparse_classes", "balance", "lengths", "scripts", "outliers"]
    assert [finding["kind"] for finding in answer["findings"]] == kinds
    assert (answer["samples"], answer["labelled"], answer["by_person"]) == (5, 5, 0)
    assert answer["findings"][2]["to_review"] == 2
    assert answer["findings"][0]["examples"][0]["text"].startswith("房间打扫得很干净")
    assert "queued" not in answer
    assert answer["report"] == str(hotel / "reports" / f"doctor-default-{datetime.now(UTC):%Y-%m-%d}.html")
    html = Path(answer["report"]).read_text(encoding="utf-8")
    assert "房间打扫得很干净床也很舒服呢" in html


def test_settings_reach_the_examination(hotel: Path, call: Call) -> None:
    answer = call("doctor", "--near", "1", "--max-length", "10", "--out", "here.html")
    assert (answer["near"], answer["max_length"], answer["report"]) == (1, 10, "here.html")
    by_kind = {finding["kind"]: finding["count"] for finding in answer["findings"]}
    assert (by_kind["duplicates"], by_kind["lengths"]) == (0, 5)
    assert Path("here.html").exists()


def test_the_findings_as_lines(hotel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["library", "doctor", "--out", "here.html"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "标签冲突 Conflicting labels  2" in out
    assert "1 groups of near duplicates, 2 samples" in out
    assert "    → wenlei library doctor --library default --to-review conflicts" in out
    assert out.splitlines()[-1] == "报告 report  here.html"


def test_findings_are_queued_once(hotel: Path, call: Call) -> None:
    queued = call("doctor", "--to-review", "conflicts", "--to-review", "scripts")["queued"]
    assert queued == {"added": 3, "raised": 0, "known": 0}
    assert call("doctor", "--to-review", "conflicts")["queued"] == {"added": 0, "raised": 0, "known": 2}


def test_what_is_odd_about_a_sample_is_settled_by_a_persons_word(hotel: Path, call: Call) -> None:
    (odd,) = (finding for finding in call("doctor")["findings"] if finding["kind"] == "scripts")
    with open_database(load_settings()) as engine:
        create_user(engine, "标注员甲", Scope.OPERATE, actor="root")
    call("label", odd["examples"][0]["sample"], "--none", "--by", "标注员甲")
    assert call("doctor", "--to-review", "scripts")["queued"]["added"] == odd["to_review"] - 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--library", "none"), "there is no library 'none'"),
        (("--to-review", "nonsense"), "--to-review 'nonsense': give one of conflicts, scripts, outliers, label_errors"),
        (("--to-review", "balance"), "--to-review 'balance'"),
        (("--to-review", "label_errors"), "name a training by folds with --run"),
        (("--run", "nowhere"), "nowhere is not a run"),
        (("--bundle", "nowhere"), "nowhere is not a bundle"),
        (("--snapshot", "abcd"), "no snapshot on record begins with abcd"),
        (("--out", "."), "--out . is a folder; name the report's file, such as doctor.html"),
        (("--near", "0.3"), "--near 0.3: give a similarity from 0.5 to 1"),
        (("--max-length", "0"), "--max-length 0"),
        (("--apply", "drop"), "--apply and --min-confidence go together"),
        (("--apply", "drop", "--min-confidence", "0.9"), "name a training by folds with --run"),
        (("--dry-run",), "--dry-run looks at what --apply would do"),
        (
            ("--run", "r", "--apply", "drop", "--min-confidence", "0.9", "--dry-run", "--to-review", "label_errors"),
            "give one of them",
        ),
        (("--by", "无名氏", "--to-review", "conflicts"), "无名氏"),
    ],
)
def test_what_cannot_be_done_is_refused(hotel: Path, refusal: Refusal, arguments: tuple[str, ...], told: str) -> None:
    assert told in refusal("doctor", *arguments)
    assert not (hotel / "reports").exists()


@pytest.fixture
def judged(home: Path, call: Call) -> Path:
    """A run by folds that is sure of every label but that of one sample, which it would give the other one."""
    texts = [f"{what}{how}{number}" for what in WHATS for number, how in enumerate(HOWS)]
    lines = [f"{text},{('好评', '差评')[number % 2]}" for number, text in enumerate(texts)]
    Path("b.csv").write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    call("import", "b.csv", "--text", "text", "--label", "label")
    frozen = open_snapshot(Path(call("snapshot", "--test", "0", "--dev", "0")["path"]))
    return sure_run(home / "runs" / "folds", frozen)


def test_predictions_by_folds_tell_of_wrong_labels_and_clean_them(judged: Path, call: Call) -> None:
    answer = call("doctor", "--run", str(judged), "--to-review", "label_errors")
    kinds = [finding["kind"] for finding in answer["findings"]]
    assert kinds[8:] == ["label_errors", "off_taxonomy", "ambiguous_classes", "hard_samples"]
    assert answer["run"]["predictions"] == answer["samples"] == 80
    assert answer["findings"][8]["count"] == 1
    assert answer["queued"]["added"] == 1
    cleaning = ("doctor", "--run", str(judged), "--apply", "drop", "--min-confidence", "0.5")
    foreseen = call(*cleaning, "--dry-run")["applied"]
    assert (foreseen["found"], foreseen["changed"], foreseen["sweep"]) == (1, 1, None)
    done = call(*cleaning)["applied"]
    assert (done["changed"], done["kept"], done["sweep"]) == (1, 0, 1)
    again = call("doctor", "--run", str(judged))
    assert (again["labelled"], again["run"]["relabelled"], again["findings"][8]["count"]) == (79, 1, 0)


def test_the_lines_tell_how_cleaning_is_taken_back_and_when_there_was_nothing_to_clean(
    judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for _ in range(2):
        with pytest.raises(SystemExit):
            main(["library", "doctor", "--run", str(judged), "--apply", "drop", "--min-confidence", "0.5"])
        told.append(capsys.readouterr().out)
    assert "整批撤销 to take it back: wenlei library sweeps --undo 1 --by NAME\n" in told[0]
    assert "没有可改的 there was nothing to change" in told[1]
    assert "仅预览" not in told[1]


def test_nothing_is_queued_when_the_confidence_to_clean_with_is_refused(
    judged: Path, call: Call, refusal: Refusal
) -> None:
    wanted = ("doctor", "--run", str(judged), "--to-review", "label_errors")
    assert "--min-confidence 0.4" in refusal(*wanted, "--apply", "drop", "--min-confidence", "0.4")
    assert call(*wanted)["queued"] == {"added": 1, "raised": 0, "known": 0}


def test_a_run_of_another_library_is_refused(judged: Path, call: Call, refusal: Refusal) -> None:
    call("import", "b.csv", "--text", "text", "--label", "label", "--library", "other")
    assert "was not frozen from library 'other'" in refusal("doctor", "--library", "other", "--run", str(judged))
