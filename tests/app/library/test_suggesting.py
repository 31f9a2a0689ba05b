"""What to label next, out of a library: what a model is unsure of, and what goes into review."""

from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from workshop import Workshop

from app.library.labelling import label_sample
from app.library.review.queueing import Reason
from app.library.scoring import pool_samples, score_texts
from app.library.selecting import Strategy, uncertainty
from app.library.suggesting import Plan, Suggestions, queue_suggestions, suggest
from app.store.tables import label_events, review_items
from model.errors import BadInput, BadTaxonomy, UnknownLibrary
from model.runtime.onnx import OnnxClassifier
from model.text import sample_id
from model.types import Task, Taxonomy
from tests.bundles import tiny_bundle

POOL = (
    "早餐很好吃房间也干净",
    "房间吵闹服务员态度差",
    "价格便宜就是酒店有点旧",
    "前台办理入住太慢了吧",
    "停车场在地下不好找路",
    "窗外能看到江景很喜欢",
)
NEAR = "停车场在地下不好找路啊"
SEVERAL = Taxonomy(Task.MULTI, ("卫生", "价格"), multiple=True)
LEVELS = Taxonomy(Task.HIERARCHICAL, ("服务-前台", "服务-餐厅", "房间"), level_sep="-")


@pytest.fixture
def hotel(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("labelled.csv", "text,label\n房间大,好评\n早餐凉,差评\n"))
    workshop.load(workshop.write("pool.csv", "text\n" + "\n".join(POOL) + "\n"), label=None)
    return workshop


@pytest.fixture
def tiny(tmp_path: Path) -> OnnxClassifier:
    return OnnxClassifier.load(tiny_bundle(tmp_path / "tiny", temperature=0.5))


def found(
    workshop: Workshop,
    classifier: OnnxClassifier | None,
    strategy: Strategy = Strategy.MARGIN,
    count: int = 3,
    library: str = "default",
    **plan: int,
) -> Suggestions:
    return suggest(
        workshop.engine, library=library, classifier=classifier, plan=Plan(count=count, strategy=strategy, **plan)
    )


def texts(suggestions: Suggestions) -> list[str]:
    return [each.sample.text for each in suggestions.suggestions]


def queued(workshop: Workshop) -> dict[str, sa.Row]:
    with workshop.engine.connect() as connection:
        return {row.sample_id: row for row in connection.execute(sa.select(review_items))}


@pytest.mark.parametrize("strategy", [Strategy.MARGIN, Strategy.ENTROPY])
def test_what_the_model_is_least_sure_of_comes_first(hotel: Workshop, tiny: OnnxClassifier, strategy: Strategy) -> None:
    pool = list(pool_samples(hotel.engine, "default"))
    unsure = uncertainty(score_texts(tiny, pool), tiny.taxonomy, thresholds={}, strategy=strategy)
    order = np.argsort(-unsure)[:4]
    suggested = found(hotel, tiny, strategy, count=4)
    assert texts(suggested) == [pool[row].text for row in order]
    assert [each.uncertainty for each in suggested.suggestions] == pytest.approx(unsure[order].tolist(), abs=1e-5)
    assert (suggested.pool, suggested.waiting, suggested.model) == (len(POOL), 0, f"tiny@{tiny.version}")
    for each in suggested.suggestions:
        assert each.predicted == each.best[:1]
        assert [label for label, _ in each.best] in (["好评", "差评"], ["差评", "好评"])


def test_what_is_labelled_is_suggested_no_more(hotel: Workshop, tiny: OnnxClassifier) -> None:
    first = texts(found(hotel, tiny))[0]
    label_sample(hotel.engine, library="default", sample=first, is_text=True, labels=["差评"], by="标注员甲")
    assert first not in texts(found(hotel, tiny, count=6))
    assert len(texts(found(hotel, tiny, count=6))) == len(POOL) - 1


def test_near_duplicates_are_never_suggested_together(hotel: Workshop, tiny: OnnxClassifier) -> None:
    hotel.load(hotel.write("near.csv", f"text\n{NEAR}\n"), label=None)
    for strategy in Strategy:
        suggested = texts(found(hotel, tiny, strategy, count=7))
        assert len(suggested) == len(POOL)
        assert len({NEAR, POOL[4]} & set(suggested)) == 1


def test_without_a_model_lots_and_texts_decide_and_the_seed_is_told(hotel: Workshop) -> None:
    drawn = [texts(found(hotel, None, Strategy.RANDOM, seed=seed)) for seed in range(8)]
    assert len(set(map(tuple, drawn))) > 1
    again = found(hotel, None, Strategy.RANDOM, seed=3)
    assert (texts(again), again.plan.seed, again.model) == (drawn[3], 3, None)
    spread = found(hotel, None, Strategy.DIVERSITY, count=4)
    assert len(set(texts(spread))) == 4
    assert all(each.uncertainty is None and each.best == () for each in spread.suggestions)


def test_by_lot_with_a_model_is_the_same_lot_with_what_the_model_says(hotel: Workshop, tiny: OnnxClassifier) -> None:
    alone, judged = (found(hotel, model, Strategy.RANDOM, seed=5) for model in (None, tiny))
    assert texts(judged) == texts(alone)
    assert all(each.uncertainty is not None and each.best for each in judged.suggestions)


@pytest.mark.parametrize("classifier", [True, False])
def test_only_so_many_are_looked_at_as_was_asked(hotel: Workshop, tiny: OnnxClassifier, classifier: bool) -> None:
    strategy = Strategy.MARGIN if classifier else Strategy.DIVERSITY
    heard: list[int] = []
    plan = Plan(count=6, strategy=strategy, seed=1, among=4)
    model = tiny if classifier else None
    suggested = suggest(hotel.engine, library="default", classifier=model, plan=plan, on_samples=heard.append)
    assert (suggested.pool, len(suggested.suggestions), sum(heard)) == (4, 4, 4)
    drawn = found(hotel, None, Strategy.RANDOM, count=4, seed=1)
    assert set(texts(suggested)) == set(texts(drawn))


def test_suggestions_go_into_review_with_what_the_model_says_and_not_twice(
    hotel: Workshop, tiny: OnnxClassifier
) -> None:
    events = hotel.count(label_events)
    first = found(hotel, tiny, Strategy.DIVERSITY)
    assert queue_suggestions(hotel.engine, first, by="标注员甲").added == 3
    assert hotel.count(label_events) == events  # a suggestion is not a label
    items = queued(hotel)
    for each in first.suggestions:
        item = items[each.sample.id]
        assert (item.reason, item.created_by, item.proposed_by) == (Reason.SUGGESTED, "标注员甲", first.model)
        assert item.value == pytest.approx(each.uncertainty)
        assert (item.proposed, item.confidence) == (f'["{each.best[0].label}"]', pytest.approx(each.best[0].score))
    second = found(hotel, tiny, count=6)
    assert (second.waiting, second.pool) == (3, len(POOL) - 3)
    assert not set(texts(first)) & set(texts(second))
    queue_suggestions(hotel.engine, second, by="标注员甲")
    with pytest.raises(BadInput, match=r"all 6 samples without a label were suggested already and wait in review"):
        found(hotel, tiny)


def test_without_a_model_the_queue_gets_no_proposal(hotel: Workshop) -> None:
    queue_suggestions(hotel.engine, found(hotel, None, Strategy.DIVERSITY), by="标注员甲")
    for item in queued(hotel).values():
        assert (item.proposed, item.proposed_by, item.confidence, item.value) == (None, None, None, 0.5)


def test_several_labels_a_text_propose_all_that_reach_their_thresholds(workshop: Workshop, tmp_path: Path) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n房间大,卫生|价格\n"), task=Task.MULTI, label_sep="|")
    workshop.load(workshop.write("pool.csv", "text\n" + "\n".join(POOL) + "\n"), label=None)
    for threshold, expected in ((0.0, {"卫生", "价格"}), (1.0, set())):
        bundle = tiny_bundle(
            tmp_path / str(threshold), taxonomy=SEVERAL, thresholds=dict.fromkeys(SEVERAL.labels, threshold)
        )
        suggested = found(workshop, OnnxClassifier.load(bundle), Strategy.ENTROPY)
        for each in suggested.suggestions:
            assert {label for label, _ in each.predicted} == expected
            assert len(each.best) == 2
    assert queue_suggestions(workshop.engine, suggested, by="标注员甲").added == 3
    assert {item.proposed for item in queued(workshop).values()} == {None}


def test_classes_in_levels(workshop: Workshop, tmp_path: Path) -> None:
    rows = "text,label\n前台慢,服务-前台\n早餐凉,服务-餐厅\n床很软,房间\n"
    workshop.load(workshop.write("a.csv", rows), task=Task.HIERARCHICAL, level_sep="-")
    workshop.load(workshop.write("pool.csv", "text\n" + "\n".join(POOL) + "\n"), label=None)
    classifier = OnnxClassifier.load(tiny_bundle(tmp_path / "levels", taxonomy=LEVELS))
    suggested = found(workshop, classifier, Strategy.DIVERSITY)
    assert len(suggested.suggestions) == 3
    assert {label for each in suggested.suggestions for label, _ in each.predicted} <= set(LEVELS.labels)


def test_a_model_that_abstains_proposes_nothing(hotel: Workshop, tmp_path: Path) -> None:
    classifier = OnnxClassifier.load(tiny_bundle(tmp_path / "shy", abstain_below=1.0))
    for each in found(hotel, classifier).suggestions:
        assert (each.predicted, len(each.best)) == ((), 2)


@pytest.mark.parametrize("strategy", [Strategy.MARGIN, Strategy.ENTROPY])
def test_a_strategy_that_asks_a_model_says_so(hotel: Workshop, strategy: Strategy) -> None:
    with pytest.raises(BadInput, match=f"strategy {strategy} asks a model .* --bundle, or begin without one"):
        found(hotel, None, strategy)


def test_what_can_not_be_asked_for() -> None:
    for count in (0, -3, 1001):
        with pytest.raises(
            BadInput, match=f"--count {count}: give a number from 1 to 1,000; label these, train on them, and ask again"
        ):
            Plan(count=count, strategy=Strategy.RANDOM)
    with pytest.raises(BadInput, match="--among 0: give a number of samples, 1 or more"):
        Plan(count=1, strategy=Strategy.RANDOM, among=0)


def test_an_empty_pool_an_unknown_library_and_a_foreign_model_are_refused(
    workshop: Workshop, tiny: OnnxClassifier, tmp_path: Path
) -> None:
    workshop.load(workshop.write("labelled.csv", "text,label\n房间大,好评\n早餐凉,差评\n"))
    for model, strategy in ((tiny, Strategy.MARGIN), (None, Strategy.DIVERSITY)):
        with pytest.raises(BadInput, match="library 'default' has no samples without a label; import more texts"):
            found(workshop, model, strategy)
    with pytest.raises(UnknownLibrary, match="no library 'other'"):
        found(workshop, None, Strategy.RANDOM, library="other")
    foreign = OnnxClassifier.load(tiny_bundle(tmp_path / "foreign", taxonomy=Taxonomy(Task.SINGLE, ("好评", "中评"))))
    for strategy in Strategy:
        with pytest.raises(BadTaxonomy, match="only the model has 中评"):
            found(workshop, foreign, strategy)


def test_more_than_the_pool_holds_is_the_pool(hotel: Workshop) -> None:
    ids = {sample.id for sample in pool_samples(hotel.engine, "default")}
    assert {each.sample.id for each in found(hotel, None, Strategy.RANDOM, count=50).suggestions} == ids
    assert ids == {sample_id(text) for text in POOL}
