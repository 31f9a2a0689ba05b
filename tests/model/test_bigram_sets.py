"""Bigram sets: what is in them, and that comparing them in flat arrays is comparing sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.bigram_sets import SHORTEST, bigram_sets, concatenate
from model.text import skeleton


def similarity(left: str, right: str) -> float:
    """Of two texts as they are; a pair is written with a bar."""
    texts = [text.partition("|") for text in (left, right)]
    sets = bigram_sets([skeleton(first, second if bar else None) for first, bar, second in texts])
    assert sets.sizes.all()
    return float(sets.similarities(np.array([0]), np.array([1]))[0])


def test_similarity_is_that_of_the_sets_of_bigrams() -> None:
    assert similarity("服务员态度特别好", "服务员态度特别好的") == 7 / 8
    assert similarity("早餐品种多味道也好", "早餐品种多味道也差") == 7 / 9
    assert similarity("好好好好好好好好很好", "好很好很好很好好好好") == 1.0
    assert similarity("房间很大也很安静。", "【房间】很大，也很安静") == 1.0
    assert similarity("房间很大也很安静呢", "前台办事拖拖拉拉的") == 0.0


def test_a_number_is_one_character_however_long() -> None:
    assert similarity("订单12已经发货请注意查收", "订单34567已经发货请注意查收") == 9 / 13
    assert similarity("订单007已经发货请注意查收", "订单7已经发货请注意查收") == 9 / 13
    assert similarity("快递单号" + "9" * 30 + "已签收了", "快递单号" + "9" * 29 + "8已签收了") == 6 / 10
    assert similarity("１２号楼的电梯总是坏", "12号楼的电梯总是坏") == 1.0
    assert bigram_sets(["2" * 500 + "号楼的电梯"]).sizes[0] == 0


def test_no_bigram_crosses_from_a_text_to_its_pair_and_their_order_counts() -> None:
    assert bigram_sets(["房间很大也很安静呢\n前台办事拖拖拉拉的"]).sizes[0] == 16
    assert similarity("房间很大也很安静呢|前台办事拖拖拉拉的", "前台办事拖拖拉拉的|房间很大也很安静呢") == 0.0
    assert similarity("房间很大也很安静呢|前台办事拖拖拉拉的", "房间很大也很安静呢前台办事拖拖拉拉的") == 0.0


def test_pairs_are_as_similar_as_the_less_similar_of_their_texts() -> None:
    long = "这家酒店离地铁站很近，走路五分钟就到，周围吃饭也很方便，晚上还很安静"
    assert similarity(f"{long}|服务员态度特别好", f"{long}|服务员态度特别好的") == 7 / 8
    assert similarity(f"服务员态度特别好|{long}", f"服务员态度特别好的|{long}") == 7 / 8
    assert similarity(f"{long}|离地铁近", f"{long}|离地铁近！") == 1.0
    assert similarity(f"{long}|离地铁近", f"{long}|离地铁不近") == 0.0
    assert similarity(f"{long}|！", f"{long}|") == 1.0
    assert similarity(f"{long}|", long) == 0.0


@pytest.mark.parametrize("text", ["", "不好吃", "一" * (SHORTEST - 1), "不好吃\n好吃", "\n"])
def test_short_texts_have_nothing_to_compare(text: str) -> None:
    assert bigram_sets([text]).sizes.tolist() == [0]


letters = st.text("甲乙丙丁戊", min_size=SHORTEST, max_size=40)


@given(st.lists(letters, min_size=2, max_size=20), st.lists(letters, min_size=2, max_size=20))
def test_flat_arrays_compare_as_sets_do(first: list[str], second: list[str]) -> None:
    sets = concatenate([bigram_sets(first), bigram_sets(second)])
    texts = first + second
    pairs = [(i, j) for i in range(len(texts)) for j in range(len(texts))]
    found = sets.similarities(*np.array(pairs).T)
    for (i, j), similarity in zip(pairs, found, strict=True):
        left, right = ({text[k : k + 2] for k in range(len(text) - 1)} for text in (texts[i], texts[j]))
        assert similarity == len(left & right) / len(left | right)
