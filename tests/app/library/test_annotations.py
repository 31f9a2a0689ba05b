"""Exports of Label Studio and doccano: each annotator's word becomes an event of that person, at its time."""

import json
import zipfile
from typing import Any

import pytest
import sqlalchemy as sa
from workshop import Workshop

from app.library.formats import Format
from app.store.tables import label_events, samples
from model.errors import BadInput
from model.types import Task


def annotation(who: Any, choices: list[str], **more: Any) -> dict[str, Any]:
    result = {"from_name": "情感", "to_name": "text", "type": "choices", "value": {"choices": choices}}
    time = {"created_at": "2024-03-01T08:00:00.123456Z", "updated_at": "2024-03-01T09:30:00.123456Z"}
    return {"completed_by": who, "result": [result], "was_cancelled": False, **time, **more}


TASKS = [
    {
        "id": 1,
        "data": {"text": "房间很干净", "门店": "徐汇"},
        "annotations": [
            annotation({"id": 3, "email": "wang@example.com"}, ["好评"]),
            annotation(4, ["差评"], updated_at="2024-03-01T17:00:00+08:00"),
            annotation(5, ["好评"], was_cancelled=True),
        ],
        "predictions": [{"result": [], "model_version": "v1"}],
    },
    {"id": 2, "data": {"text": "早餐太少了"}, "annotations": [annotation(None, ["差评"])]},
    {"id": 3, "data": {"text": "还没有标注"}, "annotations": []},
]


def words(workshop: Workshop) -> list[tuple[str, ...]]:
    """Text, labels, actor's kind, actor and time of every event, as they were written."""
    query = (
        sa.select(samples.c.text, label_events)
        .join(samples, samples.c.id == label_events.c.sample_id)
        .order_by(label_events.c.id)
    )
    with workshop.engine.connect() as connection:
        rows = connection.execute(query).all()
    return [(row.text, *json.loads(row.labels), row.actor_kind, row.actor, row.created_at) for row in rows]


def test_each_annotation_of_label_studio_is_the_word_of_its_annotator(workshop: Workshop) -> None:
    path = workshop.write("project.json", json.dumps(TASKS))
    imported = workshop.load(path, label=None)
    assert (imported.read, imported.added, imported.rejected) == (3, 3, 0)
    persons = [word for word in words(workshop) if word[2] == "person"]
    assert persons == [
        ("房间很干净", "差评", "person", "Label Studio 4", "2024-03-01T09:00:00+00:00"),
        ("房间很干净", "好评", "person", "wang@example.com", "2024-03-01T09:30:00+00:00"),
    ]
    assert [word[:3] for word in words(workshop) if word[2] == "import"] == [("早餐太少了", "差评", "import")]
    assert workshop.samples()["房间很干净"].labels == ("好评",)
    assert workshop.count(samples) == 3


def test_an_export_imported_twice_adds_no_word_and_a_grown_one_adds_the_new(workshop: Workshop) -> None:
    first = workshop.write("project.json", json.dumps(TASKS))
    workshop.load(first, label="情感")
    workshop.load(first, label="情感")
    assert workshop.count(label_events) == 3
    grown = json.loads(json.dumps(TASKS))
    grown[2]["annotations"] = [annotation("li", ["好评"])]
    workshop.load(workshop.write("project-2.json", json.dumps(grown)), label="情感")
    assert workshop.count(label_events) == 4
    assert words(workshop)[-1] == ("还没有标注", "好评", "person", "li", "2024-03-01T09:30:00+00:00")


def test_a_row_is_rejected_whole_when_one_annotation_can_not_be_used(workshop: Workshop) -> None:
    tasks = [
        {"data": {"text": "甲"}, "annotations": [annotation(1, ["鬼"]), annotation(2, ["好评", "差评"])]},
        {"data": {"text": "乙"}, "annotations": [annotation(1, ["好评"], updated_at="昨天")]},
        {"data": {"text": "丙"}, "annotations": [annotation(1, ["好评"])]},
        {"data": {"text": "丁"}, "annotations": ["坏"]},
    ]
    imported = workshop.load(workshop.write("a.json", json.dumps(tasks)), label="情感")
    assert (imported.added, imported.rejected) == (1, 3)
    assert workshop.freeze().snapshot.taxonomy.labels == ("好评",)
    with pytest.raises(BadInput, match="holds no annotations; those that do: 情感"):
        workshop.load(workshop.write("a.json", json.dumps(tasks)), label="text", library="other")


def test_paths_of_a_label_studio_taxonomy_are_hierarchical_labels(workshop: Workshop) -> None:
    result = {"from_name": "事件", "type": "taxonomy", "value": {"taxonomy": [["组织", "裁员"], ["人生", "离职"]]}}
    tasks = [{"data": {"text": "昨日裁员"}, "annotations": [annotation("li", [], result=[result])]}]
    path = workshop.write("a.json", json.dumps(tasks))
    workshop.load(path, label="事件", level_sep="-", label_sep="|")
    assert workshop.samples()["昨日裁员"].labels == ("人生-离职", "组织-裁员")


def test_json_min_has_an_annotation_a_row(workshop: Workshop) -> None:
    common = {"annotation_id": 1, "created_at": "2024-03-01T08:00:00Z", "lead_time": 2.5}
    rows = [
        {**common, "text": "很好", "情感": "好评", "annotator": 3, "updated_at": "2024-03-02T08:00:00Z"},
        {**common, "text": "很好", "情感": "差评", "annotator": 4},
        {**common, "text": "股市与球赛", "情感": {"choices": ["财经", "体育"]}, "annotator": 3},
        {**common, "text": "没有", "annotator": 3},
    ]
    path = workshop.write("a.json", json.dumps(rows))
    imported = workshop.load(path, label="情感", task=Task.MULTI)
    assert (imported.read, imported.added, imported.duplicates) == (4, 3, 1)
    assert {word[:-1] for word in words(workshop)} == {
        ("很好", "差评", "person", "Label Studio 4"),
        ("很好", "好评", "person", "Label Studio 3"),
        ("股市与球赛", "体育", "财经", "person", "Label Studio 3"),
    }


def doccano(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def test_doccano_names_its_annotators_by_the_files_of_its_archive(workshop: Workshop) -> None:
    path = workshop.home / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("wang.jsonl", doccano({"id": 1, "text": "很好", "label": ["好评"], "Comments": []}))
        archive.writestr("li.jsonl", doccano({"id": 1, "text": "很好", "label": ["差评"], "Comments": []}))
        archive.writestr("unknown.jsonl", doccano({"id": 2, "text": "没人标", "label": [], "Comments": []}))
    imported = workshop.load(path, text=None, label=None)
    assert (imported.added, imported.duplicates, imported.rejected) == (2, 1, 0)
    assert {word[:-1] for word in words(workshop)} == {
        ("很好", "好评", "person", "wang"),
        ("很好", "差评", "person", "li"),
    }
    assert workshop.load(path, text=None, label=None).added == 0
    assert workshop.count(label_events) == 2


def test_doccano_may_name_who_approved_or_number_its_users(workshop: Workshop) -> None:
    approved = {"id": 1, "text": "很好", "meta": {}, "annotation_approver": "admin", "labels": ["好评"]}
    numbered = {
        "id": 2,
        "text": "很坏",
        "annotations": [{"label": 2, "user": 7, "updated_at": "2023-01-01T00:00:00"}, {"label": 5, "user": None}],
    }
    workshop.load(workshop.write("a.jsonl", doccano(approved)), text=None, label=None)
    workshop.load(workshop.write("b.jsonl", doccano(numbered)), text=None, label=None)
    assert [word[:-1] for word in words(workshop)] == [
        ("很好", "好评", "person", "admin"),
        ("很坏", "5", "import", "wenlei library import"),
        ("很坏", "2", "person", "doccano 7"),
    ]
    assert words(workshop)[-1][-1] == "2023-01-01T00:00:00+00:00"


def test_lines_with_comments_are_no_export_of_doccano(workshop: Workshop) -> None:
    rows = doccano({"id": 1, "text": "股市与球赛", "label": "财经|体育", "comments": "无"})
    workshop.load(workshop.write("a.jsonl", rows), task=Task.MULTI, label_sep="|")
    assert workshop.samples()["股市与球赛"].labels == ("体育", "财经")


def test_an_export_that_was_asked_for_must_be_one(workshop: Workshop) -> None:
    path = workshop.write("a.json", '[{"text": "好", "label": "x"}]')
    with pytest.raises(BadInput, match=r"a\.json: this is no export of Label Studio"):
        workshop.load(path, format=Format.LABEL_STUDIO)
    assert workshop.load(path, format=Format.DOCCANO).added == 1


def test_an_annotator_without_a_name_is_rejected(workshop: Workshop) -> None:
    tasks = [{"data": {"text": "甲"}, "annotations": [annotation("\u200b", ["好评"])]}]
    with pytest.raises(BadInput, match="annotator '' is no name"):
        workshop.load(workshop.write("a.json", json.dumps(tasks)), label="情感")


@pytest.mark.parametrize(
    ("time", "reason"),
    [
        ("2999-01-01T00:00:00Z", "is yet to come"),
        ("9999-12-31T23:59:59-10:00", "is no time"),
        ("0001-01-01T00:00:00+14:00", "is no time"),
        ("昨天", "is no time"),
    ],
)
def test_an_annotation_of_no_time_that_can_be_is_rejected(workshop: Workshop, time: str, reason: str) -> None:
    tasks = [*TASKS, {"id": 4, "data": {"text": "窗很小"}, "annotations": [annotation(4, ["差评"], updated_at=time)]}]
    imported = workshop.load(workshop.write("project.json", json.dumps(tasks)), label=None)
    assert (imported.added, imported.rejected) == (3, 1)
    assert reason in imported.first_rejects[0]
