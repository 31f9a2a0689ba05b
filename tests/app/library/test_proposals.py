"""What rules and models propose is on record, and counts for nothing until a person says so."""

import pytest
from workshop import Workshop

from app.library.definition import Proposer
from app.library.history import history
from app.library.verifying import verify
from app.store.events import RecordedEvent
from app.store.tables import label_events
from model.errors import BadInput

MODEL = Proposer.read("model:评论@1a2b")


@pytest.fixture
def reviews(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("a.csv", "text,label\n房间大,好评\n早餐凉,差评\n"))
    return workshop


def propose(workshop: Workshop, rows: str, **given: str) -> int:
    """How many rows were rejected."""
    path = workshop.write("proposed.csv", "text,label,sure\n" + rows)
    return workshop.load(path, proposer=MODEL, confidence="sure", **given).rejected


def said(workshop: Workshop, text: str) -> list[RecordedEvent]:
    return list(history(workshop.engine, library="default", sample=text, is_text=True).sample.recorded)


def test_a_proposal_is_recorded_with_who_and_how_sure_and_changes_no_label(reviews: Workshop) -> None:
    before = reviews.freeze().snapshot.hash
    assert propose(reviews, "房间大,差评,0.75\n新来的,好评,\n") == 0
    proposed = said(reviews, "房间大")[-1]
    assert (proposed.event.actor_kind, proposed.event.actor, proposed.event.labels) == ("model", "评论@1a2b", ("差评",))
    assert (proposed.confidence, proposed.source, proposed.line) == (0.75, "proposed.csv", 2)
    assert said(reviews, "新来的")[0].confidence is None
    assert reviews.freeze().snapshot.hash == before
    assert list(verify(reviews.engine)) == []


def test_the_same_proposals_twice_add_nothing_and_another_models_do(reviews: Workshop) -> None:
    propose(reviews, "房间大,差评,0.75\n")
    events = reviews.count(label_events)
    propose(reviews, "房间大,差评,0.75\n")
    assert reviews.count(label_events) == events
    path = reviews.home / "proposed.csv"
    reviews.load(path, proposer=Proposer.read("rule:含“凉”字"))
    assert reviews.count(label_events) == events + 1


def test_a_proposal_brings_no_class_and_a_wrong_confidence_is_rejected(reviews: Workshop) -> None:
    assert propose(reviews, "房间大,中评,0.5\n早餐凉,差评,1.5\n窗很小,差评,很\n床很软,好评,1\n") == 3
    assert reviews.freeze().snapshot.taxonomy.labels == ("好评", "差评")


@pytest.mark.parametrize("given", ["", "model:", "person:标注员甲", "评论", "rule: "])
def test_a_proposer_is_a_rule_or_a_model_with_a_name(given: str) -> None:
    with pytest.raises(BadInput, match="give rule:NAME or model:NAME"):
        Proposer.read(given)


def test_proposals_need_a_column_and_a_confidence_needs_proposals(reviews: Workshop) -> None:
    path = reviews.write("b.csv", "text,label,sure\n窗很小,差评,0.5\n")
    with pytest.raises(BadInput, match="must be in a column; name it with --label"):
        reviews.load(path, proposer=MODEL, label=None)
    with pytest.raises(BadInput, match="--confidence goes with --proposed-by"):
        reviews.load(path, confidence="sure")
