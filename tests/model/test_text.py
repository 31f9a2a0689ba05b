"""What the normaliser folds, what it leaves alone, and that a second time changes nothing."""

import hashlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import BadText
from model.files import canonical_json
from model.text import MAX_TEXT_CHARS, Normaliser, Width, check_text, sample_id

SETTINGS = [
    Normaliser(width=width, simplify=simplify, markup=markup)
    for width, simplify, markup in itertools.product(Width, (False, True), (False, True))
]
normalise = Normaliser()

# Pieces that the steps of the normaliser fight over, between arbitrary characters.
PIECES = st.sampled_from(("lt;", "amp;", "#60;", "nbsp;", "br/", "ＡＢ１", "㎏①", "後裏著", "頭髮發", "ｶﾞ"))
PIECES |= st.sampled_from("&<b>👨：，％…＜＆ \u3000\u2028\x00\u200b\u200d\ufe0f\u0301\u0338")
MESSY = st.lists(PIECES | st.text(max_size=3), max_size=12).map("".join)


@given(MESSY)
def test_a_second_time_changes_nothing_under_any_settings(text):
    for settings in SETTINGS:
        once = settings(text)
        assert settings(once) == once


@given(MESSY)
def test_normal_text_has_single_spaces_and_no_invisible_characters(text):
    for settings in SETTINGS:
        normal = settings(text)
        assert normal == " ".join(normal.split())
        assert not set(normal) & set("\x00\x07\x7f\u200b\u200e\u202e\ufeff\u00ad")


@given(st.text(alphabet="中文标题abcXYZ0189!%=~>'，。！？：；（）《》【】“”…—· ", max_size=30))
def test_plain_text_keeps_every_character_but_superfluous_spaces(text):
    for width in (Width.KEEP, Width.LETTERS):
        assert Normaliser(width=width)(text) == " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ＡＢＣ１２３", "ABC123"),
        ("售价：９９元，打８折！", "售价：99元，打8折！"),
        ("涨幅５０％……①②", "涨幅50％……12"),
        ("重㎏，温度℃", "重㎏，温度℃"),
        ("ｶﾀｶﾅ", "カタカナ"),
    ],
)
def test_letters_and_digits_fold_and_chinese_punctuation_survives(text, expected):
    assert normalise(text) == expected


def test_width_all_folds_punctuation_too_and_width_keep_nothing():
    text = "ＡＢ：，％㎏…"
    assert Normaliser(width=Width.ALL)(text) == "AB:,%kg..."
    assert Normaliser(width=Width.KEEP)(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("好看<br/>的&nbsp;&amp;lt;书", "好看 的 <书"),
        ("<P class='x'>第一段</P><script src=a>", "第一段"),
        ("&#20070;&#x4e66;&quot;&hellip;", '书书"…'),
        ("好&nbsp好&nbsp 好", "好 好 好"),
        ("&lt;b&gt;粗&lt;/b&gt;", "粗"),
    ],
)
def test_leftovers_of_html_go(text, expected):
    assert normalise(text) == expected


@pytest.mark.parametrize(
    "text",
    ["我读<红楼梦>三遍", "3<5>2", "http://a.cn/?p=1&region=2&copy=3&notify=4", "Q&A 与 R&D", "<bilibili>好看", "a<b"],
)
def test_what_only_looks_like_html_stays(text):
    assert normalise(text) == text


def test_markup_stays_where_the_settings_say_so():
    assert Normaliser(markup=False)("<br/>&nbsp;") == "<br/>&nbsp;"


def test_invisible_and_control_characters_go():
    assert normalise("\ufeff标\u200b题\x00带\x07控\u202e制\u00ad符\U000e0041\u2066号\u200d") == "标题带控制符号"
    assert normalise("\x00\u200b") == ""


@pytest.mark.parametrize("emoji", ["👨‍👩‍👧‍👦", "🏃🏽‍♀️", "❤️‍🔥", "👍🏿", "🇨🇳"])
def test_joined_emoji_stay_whole(emoji):
    assert normalise(f"全家{emoji}出游") == f"全家{emoji}出游"


def test_white_space_of_every_kind_becomes_one_space():
    assert normalise("\t第一\u3000\u3000行\r\n\n第二\u2028\xa0行\x1c\x85 ") == "第一 行 第二 行"


def test_traditional_becomes_simplified_only_when_asked():
    assert Normaliser(simplify=True)("電腦與頭髮，乾淨") == "电脑与头发，干净"
    assert normalise("電腦與頭髮") == "電腦與頭髮"


def test_a_long_text_with_an_odd_end_takes_no_longer_than_others():
    assert normalise("中" * MAX_TEXT_CHARS + "\u200b") == "中" * MAX_TEXT_CHARS


def test_half_a_surrogate_pair_is_left_for_the_check_to_name():
    for settings in SETTINGS:
        assert settings("中\ud83d文") == "中\ud83d文"
    with pytest.raises(BadText, match=r"row 3: character 2 is half of a surrogate pair"):
        check_text("中\ud83d文", where="row 3")


def test_settings_survive_json():
    for settings in SETTINGS:
        assert Normaliser.from_json(settings.to_json()) == settings


@pytest.mark.parametrize("text", ["", " \t\u3000"])
def test_an_empty_text_is_refused_with_its_place(text):
    with pytest.raises(BadText, match=r"line 7 of a\.csv: the text is empty"):
        check_text(text, where="line 7 of a.csv")


def test_a_text_is_refused_from_one_character_too_many():
    longest = "长" * MAX_TEXT_CHARS
    assert check_text(longest, where="row 1") == longest
    with pytest.raises(BadText, match=r"row 1: the text has 20,001 characters, more than 20,000"):
        check_text(longest + "长", where="row 1")


def test_a_sample_id_tells_texts_and_pairs_apart_and_never_changes():
    assert sample_id("好") == "6bb04e9d3cef6ab778f4f93ea1fd4776"
    assert (
        len({sample_id("甲乙"), sample_id("甲", "乙"), sample_id("乙", "甲"), sample_id("甲", ""), sample_id("甲")})
        == 5
    )


@given(
    text=st.text(st.characters(exclude_categories=["Cs"])),
    pair=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
)
def test_an_id_is_the_hash_of_the_canonical_spelling(text: str, pair: str | None) -> None:
    assert sample_id(text, pair) == hashlib.sha256(canonical_json([text, pair])).hexdigest()[:32]
