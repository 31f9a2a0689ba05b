"""Snapshots listed, compared, exported and verified from the command line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli import main

Call = Callable[..., dict[str, Any]]
Refusal = Callable[..., str]


@pytest.fixture
def frozen(call: Call) -> list[str]:
    """Two snapshots, the second with one sample more and a class more."""
    Path("a.csv").write_text("text,label,part\n很好,好评,train\n很坏,差评,test\n", encoding="utf-8")
    Path("b.csv").write_text("text,label,part\n还行,中评,dev\n", encoding="utf-8")
    hashes = []
    for name in ("a.csv", "b.csv"):
        call("import", name, "--text", "text", "--label", "label", "--split", "part")
        hashes.append(call("snapshot")["snapshot"])
    return hashes


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a person sees on stdout."""
    with pytest.raises(SystemExit):
        main(["library", *arguments])
    return capsys.readouterr().out


def test_snapshots_are_listed_with_what_became_of_them(call: Call, home: Path, frozen: list[str]) -> None:
    first, second = call("snapshots")["snapshots"]
    assert (first["snapshot"], first["parent"], first["state"]) == (frozen[0], None, "present")
    assert first["counts"] == {"total": 2, "train": 1, "dev": 0, "test": 1}
    assert first["path"] == str(home / "snapshots" / "default" / frozen[0])
    assert first["created_at"] <= second["created_at"]
    assert second["parent"] == frozen[0]
    shutil.rmtree(first["path"])
    (Path(second["path"]) / "manifest.json").write_text("{}")
    assert [row["state"] for row in call("snapshots", "--library", "default")["snapshots"]] == ["gone", "damaged"]


def test_a_comparison_is_told_in_numbers_and_examples(call: Call, frozen: list[str]) -> None:
    answer = call("diff", frozen[0][:8], frozen[1], "--examples", "1")
    assert {name: answer[name] for name in ("added", "removed", "relabelled", "moved", "unchanged")} == {
        "added": 1,
        "removed": 0,
        "relabelled": 0,
        "moved": 0,
        "unchanged": 2,
    }
    assert answer["taxonomy"]["added"] == ["中评"]
    (example,) = answer["examples"]["added"]
    assert (example["text"], example["before"], example["after"]) == (
        "还行",
        None,
        {"labels": ["中评"], "split": "dev"},
    )


def test_a_person_sees_tables(call: Call, frozen: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for row in ("很好,中评,train", "很坏,差评,dev"):  # comes first in the taxonomy; a weaker split changes nothing
        Path("c.csv").write_text(f"text,label,part\n{row}\n", encoding="utf-8")
        call("import", "c.csv", "--text", "text", "--label", "label", "--split", "part")
    third = call("snapshot")["snapshot"]
    told = shown(capsys, "diff", frozen[0], third, "--examples", "1")
    assert "新增 | added" in told
    assert "标签体系新增 | new in the taxonomy: 中评" in told
    assert "改标 | relabelled: 好评 (train) → 中评 (train): 很好" in told
    listed = shown(capsys, "snapshots")
    assert [row in listed for row in (frozen[0][:12], third[:12])] == [True, True]
    assert "完好 | clean" in shown(capsys, "verify")


def test_an_export_and_its_class_names_lead_back_to_the_same_snapshot(call: Call, frozen: list[str]) -> None:
    answer = call("export", frozen[1][:6], "--format", "csv", "--out", "x/all.csv", "--label-names", "x/names.jsonl")
    assert answer == {
        "snapshot": frozen[1],
        "path": "x/all.csv",
        "samples": 3,
        "label_sep": None,
        "label_names": "x/names.jsonl",
    }
    columns = ("--text", "text", "--label", "label", "--split", "split", "--label-names", "x/names.jsonl")
    call("import", "x/all.csv", "--library", "again", *columns)
    assert call("snapshot", "--library", "again")["snapshot"] == frozen[1]
    assert call("export", frozen[1], "--format", "jsonl", "--out", "dev.jsonl", "--split", "dev")["samples"] == 1


def test_verify_ends_with_2_and_names_each_problem(
    call: Call, frozen: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("verify") == {"clean": True, "problems": 0, "first_problems": []}
    shutil.rmtree(call("snapshots")["snapshots"][0]["path"])
    with pytest.raises(SystemExit) as ended:
        main(["library", "verify", "--json"])
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert (ended.value.code, answer["clean"], answer["problems"]) == (2, False, 1)
    (problem,) = answer["first_problems"]
    assert problem["place"] == f"library default, snapshot {frozen[0]}"
    assert f"{problem['place']}: {problem['what']}" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("diff", "nowhere", "."), "'nowhere' is neither a folder nor a hash"),
        (("diff", ".", "."), "is not a snapshot"),
        (("export", "ffffff", "--format", "csv", "--out", "b.csv"), "b.csv exists already"),
        (("export", "ffffff", "--format", "csv", "--out", "c.csv"), "no snapshot on record begins with ffffff"),
        (("export", "ffffff", "--format", "csv", "--out", "c.csv", "--label-names", "a.csv"), "a.csv exists already"),
        (
            ("export", "ffffff", "--format", "csv", "--out", "c", "--label-names", "c"),
            "--out and --label-names are both c",
        ),
        (("snapshots", "--library", "nobody"), "there is no library 'nobody' (libraries: default)"),
        (("verify", "--library", "nobody"), "there is no library 'nobody' (libraries: default)"),
    ],
)
def test_what_can_not_be_done_with_snapshots_is_said_in_one_line(
    frozen: list[str], refusal: Refusal, arguments: tuple[str, ...], message: str
) -> None:
    assert message in refusal(*arguments)


def test_snapshots_of_different_tasks_are_refused(call: Call, frozen: list[str], refusal: Refusal) -> None:
    call("import", "a.csv", "--text", "text", "--label", "label", "--task", "multi", "--library", "tags")
    tags = call("snapshot", "--library", "tags")["snapshot"]
    assert "only snapshots of one task can be compared" in refusal("diff", frozen[0], tags)
