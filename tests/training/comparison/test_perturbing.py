"""The same texts, written in other ways."""

import pytest
from pypinyin import lazy_pinyin

from model.types import Text
from training.comparison.perturbing import SPLIT, SYMBOLS, perturbations

TEXTS = [Text("请相信银行卡的信息，明天天气晴好"), Text("他说今天去唱歌跳舞", "情况好吗"), Text("ok")]


def written(name: str) -> list[Text]:
    forms = perturbations(TEXTS)
    (found,) = [rewrite for form, rewrite in forms.items() if name in form]
    assert found(TEXTS) == found(TEXTS)  # the same each time
    return found(TEXTS)


def test_homophones_sound_alike_and_are_others() -> None:
    for before, after in zip(TEXTS[0].text, written("homophones")[0].text, strict=True):
        assert lazy_pinyin(before) == lazy_pinyin(after)
    changed = sum(one != other for one, other in zip(TEXTS[0].text, written("homophones")[0].text, strict=True))
    assert 1 <= changed <= 3  # a fifth of 16, where there are others that sound alike


def test_split_characters_are_those_of_the_table() -> None:
    after = written("split")[0].text
    assert after != TEXTS[0].text
    for char, parts in SPLIT.items():
        after = after.replace(parts, char)
    assert after == TEXTS[0].text


def test_every_part_of_the_table_is_two_characters_that_are_others() -> None:
    assert len(SPLIT) > 100
    for char, parts in SPLIT.items():
        assert len(parts) == 2, char
        assert char not in parts


def test_traditional_script_is_that_of_opencc() -> None:
    assert written("traditional")[0].text == "請相信銀行卡的信息，明天天氣晴好"


def test_symbols_stand_between() -> None:
    first, pair, latin = written("symbols")
    assert first.text.translate({ord(symbol): None for symbol in SYMBOLS}) == TEXTS[0].text
    assert len(first.text) == len(TEXTS[0].text) + 3
    assert pair.pair is not None
    assert len(pair.pair) == len("情况好吗") + 1
    assert len(latin.text) == 3


@pytest.mark.parametrize("name", ["homophones", "split", "traditional"])
def test_a_text_without_such_characters_stays(name: str) -> None:
    assert written(name)[2] == Text("ok")
