"""What is chosen to be labelled next: by uncertainty, spread out, never twice the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.library.selecting import Strategy, choose, lots, spread, text_features, uncertainty
from model.near import near_groups
from model.text import sample_id
from model.types import FloatArray, Task, Taxonomy, Text

SINGLE = Taxonomy(Task.SINGLE, ("好评", "中评", "差评"))
MULTI = Taxonomy(Task.MULTI, ("价格", "卫生"), multiple=True)
LEVELS = Taxonomy(Task.HIERARCHICAL, ("服务-前台", "服务-餐厅", "房间-床"), level_sep="-")
PLACES = ("前台", "餐厅", "大堂", "泳池", "停车场")
VERDICTS = ("服务周到让人满意", "人手太少要排队", "灯光昏暗看不清", "环境整洁有香味")


def unsure(rows: list[list[float]], taxonomy: Taxonomy, strategy: Strategy, **thresholds: float) -> list[float]:
    scores = np.array(rows, np.float32)
    return uncertainty(scores, taxonomy, thresholds=thresholds, strategy=strategy).tolist()


@st.composite
def pools(draw: st.DrawFn) -> tuple[list[str], FloatArray]:
    """Different texts, some of them near duplicates of others, and what each is worth, ties among them."""
    some = draw(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(VERDICTS), st.booleans()), min_size=1))
    texts = list(dict.fromkeys(f"这家酒店的{place}{verdict}{'啊' * again}" for place, verdict, again in some))
    worth = draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=len(texts), max_size=len(texts)))
    return texts, np.array(worth, np.float32)


def pick(
    texts: list[str], worth: FloatArray, strategy: Strategy, count: int, *, judged: bool = True
) -> tuple[list[str], list[int]]:
    """The texts chosen, and the positions that were read to choose them."""
    read: list[int] = []

    def texts_of(positions: np.ndarray) -> list[Text]:
        read.extend(positions.tolist())
        return [Text(texts[position]) for position in positions]

    ids = [sample_id(text) for text in texts]
    chosen = choose(worth, ids, texts_of, count=count, strategy=strategy, judged=judged)
    return [texts[position] for position in chosen], read


@given(pool=pools(), count=st.integers(1, 12), strategy=st.sampled_from(Strategy), data=st.data())
def test_a_batch_is_distinct_of_the_pool_without_near_duplicates_and_the_same_in_any_order(
    pool: tuple[list[str], FloatArray], count: int, strategy: Strategy, data: st.DataObject
) -> None:
    texts, worth = pool
    chosen, _ = pick(texts, worth, strategy, count)
    groups = near_groups((text, None) for text in texts).groups
    assert len(chosen) == min(count, len(set(groups.tolist())))
    assert len({groups[texts.index(text)] for text in chosen}) == len(chosen)
    order = data.draw(st.permutations(range(len(texts))))
    turned, _ = pick([texts[row] for row in order], worth[list(order)], strategy, count)
    assert turned == chosen


@pytest.mark.parametrize("strategy", [Strategy.MARGIN, Strategy.ENTROPY])
def test_the_most_uncertain_come_first_and_equal_ones_by_id(strategy: Strategy) -> None:
    texts = ["停车场灯光昏暗看不清", "前台服务周到让人满意", "餐厅人手太少要排队", "泳池环境整洁有香味"]
    chosen, _ = pick(texts, np.array([0.2, 0.9, 0.2, 0.5], np.float32), strategy, 4)
    assert chosen[:2] == [texts[1], texts[3]]
    assert chosen[2:] == sorted([texts[0], texts[2]], key=sample_id)


def test_of_near_duplicates_the_more_uncertain_is_chosen() -> None:
    texts = ["这家酒店的前台服务周到让人满意", "这家酒店的前台服务周到让人满意啊", "停车场灯光昏暗看不清路"]
    assert pick(texts, np.array([0.6, 0.7, 0.1], np.float32), Strategy.MARGIN, 2)[0] == [texts[1], texts[2]]


def test_a_pool_of_copies_is_searched_for_others() -> None:
    texts = [f"您的快递已经到达小区东门的驿站请凭取件码{number}当天领取" for number in range(200)] + [
        "停车场灯光昏暗看不清路"
    ]
    worth = np.linspace(1, 0, len(texts), dtype=np.float32)
    assert pick(texts, worth, Strategy.MARGIN, 2)[0] == [texts[0], texts[-1]]


def test_only_candidates_are_read() -> None:
    texts = [f"{first}{second}{third}" for first in PLACES for second in VERDICTS for third in ("早", "中", "晚")]
    _, read = pick(texts, np.linspace(0, 1, len(texts), dtype=np.float32), Strategy.DIVERSITY, 2)
    assert sorted(read) == list(range(len(texts) - 20, len(texts)))


def test_diversity_takes_what_is_unlike_before_what_is_a_little_more_uncertain() -> None:
    texts = [
        "前台办理入住排队半个小时真的太慢",
        "前台办理入住排队两个小时实在太久",
        "前台办理退房排队半个小时真是太慢",
        "早餐的豆浆和油条都很新鲜",
    ]
    worth = np.array([0.9, 0.88, 0.87, 0.8], np.float32)
    assert pick(texts, worth, Strategy.MARGIN, 2)[0] == texts[:2]
    assert pick(texts, worth, Strategy.DIVERSITY, 2)[0] == [texts[0], texts[3]]


def test_what_the_model_is_certain_of_is_not_taken_for_being_unlike() -> None:
    features = np.eye(4, dtype=np.float32)
    assert spread(features, np.array([0.5, 0.9, 0.0, 0.7], np.float32), count=3).tolist() == [1, 3, 0]


def test_without_a_model_lots_have_no_weight() -> None:
    texts = ["前台办理入住排队半个小时真的太慢", "前台办理入住排队两个小时实在太久", "早餐的豆浆和油条都很新鲜"]
    chance = np.array([0.9, 0.8, 0.01], np.float32)
    assert pick(texts, chance, Strategy.DIVERSITY, 2, judged=False)[0] == [texts[0], texts[2]]


def test_lots_follow_from_seed_and_id_alone() -> None:
    ids = [sample_id(str(number)) for number in range(1000)]
    drawn = lots(ids, 7)
    assert lots(ids[::-1], 7).tolist() == drawn[::-1].tolist()
    assert lots(ids, 8).tolist() != drawn.tolist()
    assert 0 <= drawn.min() < 0.01
    assert 0.99 < drawn.max() < 1
    assert drawn.mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("taxonomy", [SINGLE, LEVELS])
def test_one_label_a_text_by_margin_and_by_entropy(taxonomy: Taxonomy) -> None:
    rows = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.4, 0.3, 0.3], [1 / 3, 1 / 3, 1 / 3]]
    assert unsure(rows, taxonomy, Strategy.MARGIN) == pytest.approx([0, 1, 0.9, 1])
    assert unsure(rows, taxonomy, Strategy.DIVERSITY) == unsure(rows, taxonomy, Strategy.MARGIN)
    certain, two, three, all_alike = unsure(rows, taxonomy, Strategy.ENTROPY)
    assert certain == 0
    assert two == pytest.approx(np.log(2) / np.log(3))
    assert two < three < all_alike == pytest.approx(1)


def test_several_labels_a_text_by_the_label_nearest_to_its_threshold_and_by_mean_entropy() -> None:
    rows = [[0.0, 1.0], [0.5, 0.0], [0.2, 0.0], [0.6, 1.0], [0.5, 0.5]]
    assert unsure(rows, MULTI, Strategy.MARGIN) == pytest.approx([0, 1, 0.4, 0.8, 1])
    assert unsure(rows, MULTI, Strategy.MARGIN, 价格=0.2) == pytest.approx([0, 0.625, 1, 0.5, 1])
    assert unsure(rows, MULTI, Strategy.ENTROPY)[:2] == pytest.approx([0, 0.5])
    assert unsure(rows, MULTI, Strategy.ENTROPY)[4] == pytest.approx(1)


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_a_threshold_at_the_end_is_no_division_by_nothing(threshold: float) -> None:
    found = unsure([[0.0, 0.0], [1.0, 0.0], [0.5, 0.0]], MULTI, Strategy.MARGIN, 价格=threshold)
    assert all(0 <= value <= 1 for value in found)
    assert found[int(threshold)] == 1


def test_a_taxonomy_of_one_label_leaves_nothing_uncertain() -> None:
    only = Taxonomy(Task.SINGLE, ("好评",))
    for strategy in (Strategy.MARGIN, Strategy.ENTROPY):
        assert unsure([[1.0]], only, strategy) == [0]


def test_texts_as_vectors_are_near_where_they_share_characters() -> None:
    features = text_features(
        [
            Text("早餐很新鲜"),
            Text("早餐很新鲜"),
            Text("早餐不新鲜"),
            Text("停车场灯光昏暗"),
            Text("早餐", "很新鲜"),
            Text("！"),
        ]
    )
    assert np.linalg.norm(features, axis=1) == pytest.approx(1)
    alike = features @ features[0]
    assert alike[1] == pytest.approx(1)
    assert 1 > alike[2] > 0.15 > abs(alike[3])
    assert alike[4] < 1


def test_texts_as_vectors_do_not_depend_on_where_a_chunk_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [Text(f"{place}{verdict}") for place in PLACES for verdict in VERDICTS]
    whole = text_features(texts)
    monkeypatch.setattr("app.library.selecting.ROWS_AT_ONCE", 3)
    assert np.array_equal(text_features(texts), whole)
