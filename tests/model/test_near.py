"""Near duplicates: found nearly all, none that is none, whatever the order, and in linear time."""

import random
from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rensa import RMinHash

from app.library.splits import duplicate_group
from model import near
from model.bigram_sets import SHORTEST, BigramSets
from model.errors import BadInput
from model.near import NearDuplicates, NearSettings, near_groups
from model.types import IntArray

Text = tuple[str, str | None]
CHARACTERS = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面"


def alone(*texts: str) -> list[Text]:
    return [(text, None) for text in texts]


def edited(text: str, chosen: random.Random) -> str:
    """A copy in which a character was swapped, inserted or deleted, or that got a tail."""
    at = chosen.randrange(1, len(text))
    new = chosen.choice(CHARACTERS)
    return chosen.choice(
        (text[:at] + new + text[at + 1 :], text[:at] + new + text[at:], text[: at - 1] + text[at:], text + "谢谢" + new)
    )


def made_up(seed: int, families: int, copies: int) -> list[Text]:
    """Texts of 8 to 60 random characters, each followed by copies of copies of it."""
    chosen = random.Random(seed)
    texts = []
    for _ in range(families):
        text = "".join(chosen.choices(CHARACTERS, k=chosen.randint(8, 60)))
        for _ in range(copies + 1):
            texts.append(text)
            text = edited(text, chosen)
    return alone(*dict.fromkeys(texts))


def jaccard(left: str, right: str) -> float:
    """By Python's own sets; for texts without digits."""
    if min(len(left), len(right)) < SHORTEST:
        return float(left == right)
    first, second = ({text[i : i + 2] for i in range(len(text) - 1)} for text in (left, right))
    return len(first & second) / len(first | second)


def members(found: NearDuplicates) -> list[list[int]]:
    """The groups of several, by their first texts."""
    groups = defaultdict(list)
    for position, group in enumerate(found.groups.tolist()):
        groups[group].append(position)
    assert all(group == positions[0] for group, positions in groups.items())
    return [positions for positions in groups.values() if len(positions) > 1]


@pytest.mark.parametrize("threshold", [0.6, 0.8, 0.9])
def test_finds_the_pairs_that_comparing_everybody_with_everybody_finds(threshold: float) -> None:
    texts = made_up(seed=0, families=120, copies=4)
    found = near_groups(texts, NearSettings(threshold=threshold))
    similar = {
        (i, j): similarity
        for (i, (left, _)), (j, (right, _)) in combinations(enumerate(texts), 2)
        if (similarity := jaccard(left, right)) >= threshold
    }
    together = sum(found.groups[i] == found.groups[j] for i, j in similar)
    assert len(similar) > 250
    assert together >= 0.99 * len(similar)
    pairs = dict(zip(map(tuple, found.pairs.tolist()), found.similarities.tolist(), strict=True))
    assert len(pairs) > 150
    assert pairs == {pair: similar[pair] for pair in pairs}  # none that is none, and each as similar as it is


def test_pairs_link_their_groups() -> None:
    texts = made_up(seed=1, families=60, copies=6)
    found = near_groups(texts)
    reached = np.arange(len(texts))
    for _ in range(20):
        for i, j in found.pairs:
            reached[[i, j]] = reached[[i, j]].min()
    assert (reached == found.groups).all()
    assert len(members(found)) > 40


@pytest.mark.parametrize("rows", [1, 7, 2048])
def test_groups_depend_on_the_texts_alone(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = made_up(seed=2, families=80, copies=3)
    expected = {frozenset(texts[i] for i in group) for group in members(near_groups(texts))}
    monkeypatch.setattr(near, "ROWS_AT_ONCE", rows)
    shuffled = random.Random(0).sample(texts, len(texts))
    heard: list[int] = []
    found = near_groups(iter(shuffled), on_texts=heard.append)
    assert {frozenset(shuffled[i] for i in group) for group in members(found)} == expected
    assert (len(heard), sum(heard)) == (-(-len(texts) // rows), len(texts))


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pairs are compared, a number for each time."""
    counts: list[int] = []
    similarities = BigramSets.similarities

    def counted(self: BigramSets, left: IntArray, right: IntArray) -> near.Similarities:
        counts.append(len(left))
        return similarities(self, left, right)

    monkeypatch.setattr(BigramSets, "similarities", counted)
    return counts


def test_a_template_that_is_repeated_costs_little_more_than_a_comparison_a_text(compared: list[int]) -> None:
    for size in (1_000, 4_000):
        compared.clear()
        texts = alone(*(f"您好，您的快递单号{number}已经到达门店，请凭取件码尽快来取" for number in range(size)))
        assert members(near_groups(texts)) == [list(range(size))]
        assert size <= sum(compared) + 1 <= 2 * size


def test_crowded_buckets_of_texts_that_are_not_near_cost_some_comparisons_a_text(compared: list[int]) -> None:
    chosen = random.Random(0)
    costs = []  # a text
    for size in (2_000, 8_000):
        compared.clear()
        common = "感谢您的评价我们会继续努力为您服务"
        near_groups(alone(*(common + "".join(chosen.choices(CHARACTERS, k=10)) for _ in range(size))))
        costs.append(sum(compared) / size)
    assert costs[1] < 2 * costs[0]  # not four times


def test_one_character_more_makes_another_short_text() -> None:
    found = near_groups(alone("好吃", "不好吃", "好吃！", "味道好吃极了", "味道好吃极了啊", "ＯＫ", "ok"))
    assert found.groups.tolist() == [0, 1, 0, 3, 4, 5, 5]
    assert (found.pairs.tolist(), found.similarities.tolist()) == ([[0, 2], [5, 6]], [1.0, 1.0])


def test_other_numbers_make_near_texts_only_where_much_else_is_said() -> None:
    long = "您好您的订单{}已经由快递小哥送到小区门口的快递柜请及时领取"
    found = near_groups(alone(*(text.format(n) for text in (long, "这家店我给{}分不能再多") for n in (2, 10, 98765))))
    assert found.groups.tolist() == [0, 0, 0, 3, 4, 5]


def test_pairs_are_near_where_both_their_texts_are() -> None:
    asked, told = "请问这款手机支持无线快速充电功能吗", "支持的亲，最高可以到五十瓦的无线快充哦"
    texts = [
        (asked, told),
        (asked + "呢", told),
        (told, asked),
        (asked, "不支持"),
        (asked, None),
        (asked + "呀", "不支持。"),
    ]
    assert near_groups(texts).groups.tolist() == [0, 0, 2, 3, 4, 3]


def test_texts_as_similar_as_the_threshold_are_near() -> None:
    text = "".join(chr(0x4E00 + 7 * place) for place in range(101))
    for threshold, length in ((0.55, 56), (0.7, 71), (0.8, 81), (1.0, 101)):  # in 100 bigrams
        found = near_groups(
            alone(text, text[:length] + "！" if length == 101 else text[:length]), NearSettings(threshold)
        )
        assert found.similarities.tolist() == [threshold]


def test_no_texts_have_no_groups() -> None:
    found = near_groups([])
    assert (found.groups.shape, found.pairs.shape, found.similarities.shape) == ((0,), (0, 2), (0,))


pieces = st.sampled_from(["房间", "很大", "也", "安静", "，", "！", "12", "7号", "Wi-Fi", "不", "早餐", "丰富", " "])
text = st.lists(pieces, max_size=14).map("".join)


@settings(deadline=None)
@given(st.lists(st.tuples(text, st.none() | text), max_size=30))
def test_groups_are_a_partition_that_never_splits_exact_duplicates(texts: list[Text]) -> None:
    found = near_groups(texts)
    groups = found.groups
    assert (groups <= np.arange(len(texts))).all()
    assert (groups[groups] == groups).all()
    exact: dict[int, int] = {}
    for position, (first, second) in enumerate(texts):
        group = duplicate_group(f"{first}\n{second}", first, second)
        assert groups[exact.setdefault(group, position)] == groups[position]
    for (i, j), similarity in zip(found.pairs, found.similarities, strict=True):
        assert i < j
        assert groups[i] == groups[j]
        assert NearSettings().threshold <= similarity <= 1.0


def test_the_chance_of_being_compared_is_as_documented() -> None:
    """The S-curve of docs/duplicates.md, on signatures of rensa itself."""
    band = NearSettings(threshold=0.8).band
    assert (band, near.PERMUTATIONS // band) == (6, 21)
    generator = np.random.default_rng(0)
    for size, other, expected in ((27, 3, 0.9983), (25, 2, 0.9998)):  # 24/30 = 0.8, 23/27 = 0.852
        left = generator.integers(0, 2**63, (20_000, size), dtype=np.uint64)
        right = left.copy()
        right[:, :other] = generator.integers(0, 2**63, (len(left), other), dtype=np.uint64)
        ends = np.arange(0, left.size + 1, size, dtype=np.uint64)
        first, second = (
            np.array(RMinHash.digest_matrix_from_flat_token_hashes(codes.ravel(), ends, 128, near.SEED).to_rows())
            for codes in (left, right)
        )
        same = (first == second)[:, : 21 * band].reshape(-1, 21, band).all(axis=2).any(axis=1)
        assert same.mean() > expected - 0.0005  # it does a little better than independent slots would


def test_signatures_are_those_of_the_release_that_groups_were_first_made_with() -> None:
    """Which near texts are found follows from them: a change would change the splits of snapshots to come."""
    codes, ends = np.array([1, 2, 3, 5, 8, 13], dtype=np.uint64), np.array([0, 2, 6], dtype=np.uint64)
    rows = RMinHash.digest_matrix_from_flat_token_hashes(codes, ends, 4, near.SEED).to_rows()
    assert (RMinHash.ALGORITHM_VERSION, rows) == (
        2,
        [
            [3412655276, 174134441, 1149744407, 2649113185],
            [1950488232, 851878387, 435726589, 1349296340],
        ],
    )


@pytest.mark.parametrize("threshold", [0.0, 0.49, 1.01, float("nan")])
def test_a_threshold_that_is_none_is_refused(threshold: float) -> None:
    with pytest.raises(BadInput, match=r"--threshold .*from 0\.5 to 1"):
        NearSettings(threshold=threshold)


def test_bands_follow_from_the_threshold() -> None:
    assert [NearSettings(threshold=t).band for t in (0.5, 0.7, 0.9, 1.0)] == [3, 4, 10, 128]
