"""`wenlei library suggest`: as JSON, as lines, into review, and when refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from model.types import Task, Taxonomy
from tests.bundles import tiny_bundle

Call = Callable[..., dict[str, Any]]
Refusal = Callable[..., str]
POOL = ("早餐很好吃房间也干净", "房间吵闹服务员态度差", "前台办理入住太慢了吧", "窗外能看到江景很喜欢")


@pytest.fixture
def hotel(home: Path, call: Call, capsys: pytest.CaptureFixture[str]) -> Path:
    Path("a.csv").write_text("text,label\n房间大,好评\n早餐凉,差评\n", encoding="utf-8")
    Path("pool.csv").write_text("text\n" + "\n".join(POOL) + "\n", encoding="utf-8")
    call("import", "a.csv", "--text", "text", "--label", "label")
    call("import", "pool.csv", "--text", "text")
    tiny_bundle(Path("tiny"))
    tiny_bundle(Path("foreign"), taxonomy=Taxonomy(Task.SINGLE, ("好评", "中评")))
    with pytest.raises(SystemExit):
        main(["user", "create", "标注员甲"])
    capsys.readouterr()
    return home


def test_suggestions_as_json(hotel: Path, call: Call) -> None:
    found = call("suggest", "--bundle", "tiny", "--count", "2", "--strategy", "margin", "--seed", "4")
    assert found["model"].startswith("tiny@")
    figures = {name: found[name] for name in ("library", "strategy", "seed", "pool", "waiting", "queued")}
    assert figures == {
        "library": "default",
        "strategy": "margin",
        "seed": 4,
        "pool": 4,
        "waiting": 0,
        "queued": None,
    }
    first, second = found["suggestions"]
    assert 1 >= first["uncertainty"] >= second["uncertainty"] >= 0
    assert {first["text"], second["text"]} < set(POOL)
    scores = [each["score"] for each in first["best"]]
    assert first["uncertainty"] == pytest.approx(1 - (scores[0] - scores[1]), abs=1e-5)
    assert call("suggest", "--bundle", "tiny", "--count", "2", "--strategy", "margin", "--seed", "4") == found


def test_suggestions_go_into_review_in_the_name_of_a_person(hotel: Path, call: Call) -> None:
    review = ("--to-review", "--by", "标注员甲")
    found = call("suggest", "--bundle", "tiny", "--count", "3", *review)
    assert (found["strategy"], found["queued"]) == ("diversity", {"added": 3, "raised": 0, "known": 0})
    rest = call("suggest", "--count", "3", *review)
    assert (rest["model"], rest["pool"], rest["waiting"], rest["queued"]["added"]) == (None, 1, 3, 1)


def test_suggestions_as_lines(hotel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for bundle in (["--bundle", "tiny"], []):
        with pytest.raises(SystemExit) as ended:
            main(["library", "suggest", "--count", "2", *bundle, "--to-review", "--by", "标注员甲"])
        assert ended.value.code == 0
        shown = capsys.readouterr().out.splitlines()
        assert len(shown) == 4
        assert any(shown[0].endswith(text) for text in POOL)
        assert ("好评 0." in shown[0]) == bool(bundle)
        assert shown[3] == "送入复核 queued: 新增 new 2  提前 raised 0"
        waiting = "" if bundle else "  已在复核 in review 2"
        assert shown[2] == f"推荐 suggested 2 / {4 if bundle else 2}{waiting}  diversity seed 0"


REFUSED = [
    (("--count", "0"), "--count 0: give a number from 1 to 1,000"),
    (("--count", "2", "--strategy", "margin"), "strategy margin asks a model"),
    (("--count", "2", "--among", "0"), "--among 0: give a number of samples, 1 or more"),
    (("--count", "2", "--to-review"), "--to-review and --by go together"),
    (("--count", "2", "--by", "标注员甲"), "--to-review and --by go together"),
    (("--count", "2", "--to-review", "--by", "标注员乙"), "标注员乙"),
    (("--count", "2", "--bundle", "foreign"), "was trained for another taxonomy than library 'default' has now"),
    (("--count", "2", "--library", "other"), "there is no library 'other'"),
    (("--count", "2", "--bundle", "nowhere"), "nowhere"),
]


def test_what_can_not_be_done_is_told_in_one_line(hotel: Path, refusal: Refusal) -> None:
    for arguments, message in REFUSED:
        assert message in refusal("suggest", *arguments)


def test_a_pool_without_samples_is_told(home: Path, call: Call, refusal: Refusal) -> None:
    Path("a.csv").write_text("text,label\n房间大,好评\n早餐凉,差评\n", encoding="utf-8")
    call("import", "a.csv", "--text", "text", "--label", "label")
    assert "library 'default' has no samples without a label" in refusal("suggest", "--count", "5")
