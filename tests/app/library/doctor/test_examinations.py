"""What the doctor finds in libraries that were made to have it."""

from itertools import combinations
from typing import Any

import pytest
from bundles import tiny_bundle
from patients import SENTENCES, rows
from workshop import Workshop

from app.library.doctor.examining import Examination, Questions, examine
from app.library.doctor.findings import Finding, Kind, Severity
from app.library.review.queueing import Reason
from model.errors import BadInput, BadSnapshot, UnknownLibrary
from model.types import Task

COPIES = [f"{SENTENCES[0]}{end}" for end in ("啊", "呢", "哦", "呀")]
ORDINARY = ["，".join(some) for size in (2, 3) for some in combinations(SENTENCES, size)][:90]


def examined(workshop: Workshop, library: str = "default", **questions: Any) -> Examination:
    return examine(workshop.engine, library=library, questions=Questions(**questions))


def found(workshop: Workshop, kind: Kind, **given: Any) -> Finding:
    (finding,) = (each for each in examined(workshop, **given).findings if each.kind is kind)
    return finding


def load(workshop: Workshop, *cells: tuple[str, ...], header: str = "text,label", **given: Any) -> None:
    workshop.load(workshop.write("a.csv", rows(*cells, header=header)), **given)


def id_of(examination: Examination, text: str) -> str:
    return next(sample.id for sample in examination.texts.values() if sample.text == text)


def test_everything_is_looked_at_and_a_clean_library_is_fine(workshop: Workshop) -> None:
    load(workshop, *((text, ("好评", "差评")[number % 2]) for number, text in enumerate(ORDINARY)))
    heard: list[int] = []
    examination = examine(workshop.engine, library="default", questions=Questions(), on_samples=heard.append)
    kinds = ["duplicates", "leakage", "conflicts", "sparse_classes", "balance", "lengths", "scripts", "outliers"]
    assert [finding.kind for finding in examination.findings] == kinds
    assert {finding.severity for finding in examination.findings} == {Severity.FINE}
    assert (examination.samples, examination.labelled, examination.by_person) == (90, 90, 0)
    assert sum(heard) == 180


def test_near_duplicates_are_counted_by_group(workshop: Workshop) -> None:
    load(workshop, *((text, "好评") for text in (*COPIES, *SENTENCES[1:])))
    finding = found(workshop, Kind.DUPLICATES)
    assert (finding.count, finding.figures["grouped"], finding.figures["superfluous"]) == (1, 4, 3)
    assert finding.severity is Severity.SERIOUS
    assert finding.commands == ("wenlei library duplicates --library default",)
    assert finding.figures["plots"][0]["bars"][2] == ["4", 1]


def test_a_copy_of_a_dev_text_in_train_is_a_leak(workshop: Workshop) -> None:
    splits = ("train", "dev", "train", "train")
    cells = [(text, "好评", split) for text, split in zip(COPIES, splits, strict=True)]
    load(
        workshop, *cells, *((text, "好评", "dev") for text in SENTENCES[1:4]), header="text,label,split", split="split"
    )
    finding = found(workshop, Kind.LEAKAGE)
    assert (finding.count, finding.severity) == (1, Severity.SERIOUS)
    leak = finding.figures["imported"][1]
    assert (leak["of"], leak["in"], leak["groups"], leak["samples"], leak["share"]) == ("dev", "train", 1, 1, 0.25)
    assert [example.why for example in finding.examples] == ["导入划分 imported: dev", "导入划分 imported: train"]


def test_a_snapshot_that_parts_near_duplicates_leaks_and_one_that_keeps_them_does_not(workshop: Workshop) -> None:
    load(workshop, *((text, "好评") for text in (*COPIES, *SENTENCES[1:])))
    parted = workshop.freeze(near=1.0, test=0.4, dev=0.3).snapshot
    kept = workshop.freeze(test=0.4, dev=0.3).snapshot
    leak = found(workshop, Kind.LEAKAGE, snapshot=parted.hash[:8])
    assert leak.severity is Severity.SERIOUS
    assert any(each["samples"] for each in leak.figures["snapshot"])
    assert not any(each["samples"] for each in leak.figures["imported"])
    assert found(workshop, Kind.LEAKAGE, snapshot=kept.hash).severity is Severity.FINE


def test_conflicts_and_odd_near_duplicates_go_to_review_with_what_the_others_say(workshop: Workshop) -> None:
    cells = [*((text, "好评") for text in COPIES[:3]), (COPIES[3], "差评"), (SENTENCES[5], "差评")]
    load(workshop, *cells, *((text, "差评") for text in SENTENCES[6:]))
    load(workshop, (SENTENCES[5], "好评"))
    examination = examined(workshop)
    finding = next(each for each in examination.findings if each.kind is Kind.CONFLICTS)
    odd, disputed = finding.reviews
    assert (odd.sample_id, odd.reason) == (id_of(examination, COPIES[3]), Reason.DUPLICATE)
    assert (odd.value, odd.proposed, odd.confidence) == (0.75, ("好评",), 0.75)
    assert (odd.details["group_size"], odd.details["labels"]) == (4, {"好评": 3, "差评": 1})
    assert (disputed.sample_id, disputed.reason) == (id_of(examination, SENTENCES[5]), Reason.CONFLICT)
    assert finding.commands[0] == "wenlei library doctor --library default --to-review conflicts"


def test_where_near_duplicates_are_evenly_divided_nobody_is_proposed(workshop: Workshop) -> None:
    load(workshop, (COPIES[0], "好评"), (COPIES[1], "差评"), *((text, "差评") for text in SENTENCES[1:]))
    finding = found(workshop, Kind.CONFLICTS)
    assert [(each.value, each.proposed) for each in finding.reviews] == [(0.5, None), (0.5, None)]


def test_classes_without_samples_with_one_and_with_few_are_told(workshop: Workshop) -> None:
    names = workshop.write("names.txt", "好评\n差评\n咨询\n投诉\n").read_text().split()
    cells = [
        *((text, "好评") for text in ORDINARY[:40]),
        *((text, "差评") for text in SENTENCES[:3]),
        ("问路怎么走", "咨询"),
    ]
    load(workshop, *cells, names=tuple(names))
    finding = found(workshop, Kind.SPARSE_CLASSES)
    assert (finding.severity, finding.count) == (Severity.SERIOUS, 3)
    assert finding.figures["classes"] == {"投诉": 0, "咨询": 1, "差评": 3}
    assert [example.labels for example in finding.examples] == [("咨询",), ("差评",)]
    balance = found(workshop, Kind.BALANCE)
    assert balance.severity is Severity.NOTABLE
    assert balance.figures["levels"][0]["ratio"] == 40


def test_balance_is_told_level_by_level(workshop: Workshop) -> None:
    cells = [*((text, "服务-前台") for text in ORDINARY[:40]), *((text, "服务-客房") for text in ORDINARY[40:60])]
    load(workshop, *cells, (SENTENCES[0], "餐饮-早餐"), task=Task.HIERARCHICAL, level_sep="-")
    first, second = found(workshop, Kind.BALANCE).figures["levels"]
    assert (first["largest"], first["most"], first["smallest"], first["ratio"]) == ("服务", 60, "餐饮", 60)
    assert (second["classes"], second["ratio"]) == (3, 40)


def test_labels_of_a_multi_label_library_are_each_counted(workshop: Workshop) -> None:
    cells = [(text, "服务|位置" if number < 30 else "位置") for number, text in enumerate(ORDINARY)]
    load(workshop, *cells, task=Task.MULTI, label_sep="|")
    level = found(workshop, Kind.BALANCE).figures["levels"][0]
    assert (level["most"], level["least"]) == (90, 30)


def test_texts_longer_than_the_model_reads_are_told_by_estimate(workshop: Workshop) -> None:
    load(workshop, *((text, "好评") for text in SENTENCES), ("好" * 200, "好评"), ("a" * 200, "好评"))
    finding = found(workshop, Kind.LENGTHS)
    assert (finding.count, finding.figures["exact"], finding.severity) == (1, False, Severity.NOTABLE)
    assert finding.figures["tokens"]["100"] == 202
    first, second = finding.commands
    assert first == "wenlei library snapshot --library default"  # it prints the folder that the next one takes
    assert second.startswith("wenlei train --snapshot FOLDER --arch bert --max-length")
    frozen = workshop.freeze().snapshot
    (only,) = found(workshop, Kind.LENGTHS, snapshot=frozen.hash).commands
    assert only.startswith(f"wenlei train --snapshot {frozen.path} --arch bert --max-length")
    assert found(workshop, Kind.LENGTHS, max_length=202).count == 0
    assert found(workshop, Kind.LENGTHS, max_length=51).count == 2


def test_a_bundle_counts_its_own_tokens_and_gives_its_own_limit(workshop: Workshop) -> None:
    bundle = tiny_bundle(workshop.home / "bundle")
    load(workshop, ("好" * 500, "好评"), *((text, "好评") for text in SENTENCES))
    finding = found(workshop, Kind.LENGTHS, bundle=bundle.path)
    assert (finding.figures["exact"], finding.figures["bundle"]) == (True, "tiny")
    assert finding.figures["max_length"] == bundle.manifest.max_length
    assert finding.figures["tokens"]["100"] == 502


def test_other_languages_mojibake_and_traditional_chinese_are_told(workshop: Workshop) -> None:
    odd = ["The room was clean and quiet", "ホテルの部屋はとても広かったです", "服务很好\ufffd\ufffd下次再来"]
    traditional = "房間很乾淨，櫃檯服務員態度親切"
    load(workshop, *((text, "好评") for text in (*SENTENCES, *odd, traditional)))
    examination = examined(workshop)
    finding = next(each for each in examination.findings if each.kind is Kind.SCRIPTS)
    assert {each.sample_id for each in finding.reviews} == {id_of(examination, text) for text in odd}
    assert (finding.figures["foreign"], finding.figures["broken"], finding.figures["traditional"]) == (2, 1, 1)
    assert finding.count == 4
    assert finding.commands[1].endswith("--simplify")


def test_a_brand_name_makes_no_text_foreign(workshop: Workshop) -> None:
    load(workshop, *((text, "好评") for text in SENTENCES), ("新买的MacBookPro很轻便", "好评"))
    assert found(workshop, Kind.SCRIPTS).figures["foreign"] == 0


def test_garbage_is_an_outlier_and_short_praise_is_not(workshop: Workshop) -> None:
    garbage = "锟斤拷烫烫烫屯屯屯葺葺莨莪攴蛂癫善珨踬怢督"
    load(workshop, *((text, "好评") for text in (*ORDINARY, *SENTENCES, garbage, f"{garbage}！！", "方便", "很好喝")))
    examination = examined(workshop)
    finding = next(each for each in examination.findings if each.kind is Kind.OUTLIERS)
    assert {examination.texts[each.sample_id].text for each in finding.examples} == {garbage, f"{garbage}！！"}
    assert all(each.reason == Reason.OUTLIER and 0.5 <= each.value <= 1 for each in finding.reviews)


def test_of_a_library_without_labels_all_else_is_told(workshop: Workshop) -> None:
    load(workshop, *((text,) for text in (*COPIES, *SENTENCES)), header="text", label=None)
    by_kind = {finding.kind: finding for finding in examined(workshop).findings}
    assert by_kind[Kind.DUPLICATES].count == 1
    assert by_kind[Kind.CONFLICTS].count == 0
    assert by_kind[Kind.BALANCE].summary_en == "no sample has a label"


def test_a_library_of_pairs_and_of_one_sample_is_examined(workshop: Workshop) -> None:
    load(workshop, ("好", "坏", "否"), header="text,other,label", pair="other")
    examination = examined(workshop)
    assert examination.samples == 1
    assert {finding.kind: finding.count for finding in examination.findings}[Kind.SPARSE_CLASSES] == 1


def test_what_cannot_be_examined_is_refused_with_a_way_out(workshop: Workshop) -> None:
    with pytest.raises(UnknownLibrary):
        examined(workshop)
    load(workshop, *((text, "好评") for text in ORDINARY))
    load(workshop, *((text, "好评") for text in ORDINARY), library="other")
    other = workshop.freeze("other").snapshot
    with pytest.raises(BadSnapshot, match="was frozen from library 'other', not 'default'"):
        examined(workshop, snapshot=other.hash)
    with pytest.raises(BadInput, match="--max-length 0"):
        Questions(max_length=0)
    with pytest.raises(BadInput, match=r"--near 0\.2"):
        Questions(near=0.2)
