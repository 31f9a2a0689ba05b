from collections import Counter
from pathlib import Path

import jieba
import numpy as np
import pytest

from model.errors import BadInput
from model.files import read_json, write_json
from model.tokenization import load_tokenizer
from model.tokenization.base import collate
from model.tokenization.segment import segment
from model.tokenization.words import (
    BEGIN_TEXT,
    BEGIN_WORD,
    END_TEXT,
    END_WORD,
    FIRST_CHARACTER,
    SEPARATOR,
    SPECIAL_WORDS,
    UNKNOWN,
    UNKNOWN_CHARACTER,
    WordTokenizer,
    share,
    words_of,
)
from model.types import Text

TEXTS = (
    "上次来时房间很干净，服务员也热情。",
    "这家酒店的早餐又贵又难吃，下次不来了！",
    "我在北京大学读书时常去图书馆看书。",
    "小明硕士毕业于中国科学院计算所，后在日本京都大学深造",
    "结婚的和尚未结婚的都来参加了晚会。",
    "龘靐齉爩连在一起是什么意思？",
)


@pytest.fixture
def tokenizer() -> WordTokenizer:
    """All words of the texts above, twice where they stand twice."""
    counts = Counter(word for text in TEXTS for word in segment(text))
    return WordTokenizer.from_counts(counts, n_words=200, n_characters=300, longest_word=4, max_length=16)


def test_chinese_words_are_those_of_jiebas_python_edition() -> None:
    # its dictionary is read as text: `initialize` would unmarshal whatever lies in the folder for temporary files
    reference = jieba.Tokenizer()
    reference.FREQ, reference.total = reference.gen_pfdict(reference.get_dict_file())
    reference.initialized = True
    for text in (*TEXTS, "".join(TEXTS), "今天 天气 真好", "第3季度涨了12%，约5000元", "他说：“好！”"):
        assert segment(text) == reference.lcut(text)


def test_the_words_of_a_text_joined_are_the_text() -> None:
    for text in (*TEXTS, "用 apt-get 装  linux-2.6.11\n😀 ok ", "", " "):
        assert "".join(segment(text)) == text


def test_spaces_are_no_words() -> None:
    assert words_of("用 apt-get 装\t软件") == ["用", "apt-get", "装", "软件"]


def test_a_text_is_read_as_its_words_between_begin_and_end(tokenizer: WordTokenizer) -> None:
    (encoded,) = tokenizer.encode([Text("房间很干净。")])
    ids = encoded.inputs["word_ids"]
    assert (ids[0], ids[-1]) == (BEGIN_TEXT, END_TEXT)
    assert [tokenizer.words[number - len(SPECIAL_WORDS)] for number in ids[1:-1]] == ["房间", "很", "干净", "。"]
    characters = encoded.inputs["char_ids"]
    assert characters.shape == (6, tokenizer.word_length) == (6, 4 + 2)
    spelled = [tokenizer.characters[number - FIRST_CHARACTER] for number in characters[1, 1:3]]
    assert (characters[1, 0], spelled, characters[1, 3], characters[1, 4]) == (BEGIN_WORD, ["房", "间"], END_WORD, 0)
    assert encoded.inputs["attention_mask"].tolist() == [1] * 6
    assert not encoded.truncated


def test_an_unknown_word_keeps_its_characters(tokenizer: WordTokenizer) -> None:
    ids, characters = tokenizer.encode_words(["净房", "喵房", "房间"])
    assert ids.tolist()[:2] == [UNKNOWN, UNKNOWN]
    clean, room = (FIRST_CHARACTER + tokenizer.characters.index(one) for one in "净房")
    assert characters[0].tolist() == [BEGIN_WORD, clean, room, END_WORD, 0, 0]
    assert characters[1].tolist() == [BEGIN_WORD, UNKNOWN_CHARACTER, room, END_WORD, 0, 0]
    assert (characters[2] == tokenizer.characters_of_words[ids[2]]).all()
    assert (tokenizer.characters_of_words[UNKNOWN] != characters[0]).any()


def test_a_word_longer_than_the_longest_is_read_to_its_limit(tokenizer: WordTokenizer) -> None:
    _, characters = tokenizer.encode_words(["房间房间房间"])
    assert (characters[0] != 0).all()
    assert characters[0, -1] == END_WORD


def test_special_words_are_spelled_apart_from_each_other_and_from_all_others(tokenizer: WordTokenizer) -> None:
    spellings = {tuple(row) for row in tokenizer.characters_of_words}
    assert len(spellings) == tokenizer.vocabulary_size
    assert tokenizer.characters_of_words.max() == tokenizer.n_characters - 1
    ids, _ = tokenizer.encode_words(segment("<s></s><unk><pad><sep>"))
    assert set(ids) == {UNKNOWN}  # a text can't write them


def test_a_pair_is_joined_by_a_separator(tokenizer: WordTokenizer) -> None:
    (encoded,) = tokenizer.encode([Text("早餐", "很贵")])
    ids = encoded.inputs["word_ids"]
    assert ids[[0, 2, -1]].tolist() == [BEGIN_TEXT, SEPARATOR, END_TEXT]
    assert (encoded.inputs["char_ids"] == tokenizer.characters_of_words[ids]).all()


@pytest.mark.parametrize(
    ("lengths", "room", "kept"),
    [((3, 4), 7, (3, 4)), ((3, 9), 7, (3, 4)), ((9, 3), 7, (4, 3)), ((9, 9), 7, (3, 4)), ((0, 9), 7, (0, 7))],
)
def test_the_longer_text_of_a_pair_is_cut_first(lengths: tuple[int, int], room: int, kept: tuple[int, int]) -> None:
    assert share(lengths, room) == kept


def test_texts_are_cut_to_the_maximum_and_that_is_told(tokenizer: WordTokenizer) -> None:
    for text in (Text("很贵" * 20), Text("早餐", "很贵" * 20), Text("很贵" * 20, "很贵" * 20)):
        (encoded,) = tokenizer.encode([text])
        assert encoded.length == tokenizer.max_length
        assert encoded.truncated
        assert encoded.inputs["word_ids"][-1] == END_TEXT


def test_a_batch_pads_words_and_their_characters(tokenizer: WordTokenizer) -> None:
    short, long = tokenizer.encode([Text("早餐"), Text("早餐很贵")])
    batch = collate([short, long], tokenizer.padding, multiple=8)
    assert {name: array.shape for name, array in batch.items()} == {
        "word_ids": (2, 8),
        "char_ids": (2, 8, tokenizer.word_length),
        "attention_mask": (2, 8),
    }
    assert (batch["char_ids"][0, : short.length] == short.inputs["char_ids"]).all()
    assert not batch["char_ids"][0, short.length :].any()
    assert all(array.dtype == np.int64 for array in batch.values())


def test_the_most_frequent_words_and_characters_are_kept_in_order() -> None:
    counts = Counter({word: 20 - number for number, word in enumerate("甲乙丙丁戊己庚辛壬癸")}, 子丑=30)
    counts[" "] = 99
    tokenizer = WordTokenizer.from_counts(counts, n_words=5 + 10, n_characters=FIRST_CHARACTER + 3)
    assert tokenizer.words == ("子丑", *"甲乙丙丁戊己庚辛壬")
    assert tokenizer.characters == ("丑", "子", "甲")
    assert (tokenizer.vocabulary_size, tokenizer.n_characters) == (15, FIRST_CHARACTER + 3)


def test_a_corpus_of_hardly_a_word_is_refused() -> None:
    with pytest.raises(BadInput, match="only 2 different words"):
        WordTokenizer.from_counts({"好": 9, "坏": 3}, n_words=100, n_characters=100)
    with pytest.raises(BadInput, match="too few for a vocabulary"):
        WordTokenizer.from_counts({"好": 9, "坏": 3}, n_words=6, n_characters=100)


def test_a_saved_tokenizer_reads_the_same(tokenizer: WordTokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    again = load_tokenizer(tmp_path, max_length=9)
    assert isinstance(again, WordTokenizer)
    assert again.max_length == 9
    text = Text("喵喵早餐")
    for name, values in tokenizer.encode([text])[0].inputs.items():
        assert (again.encode([text])[0].inputs[name] == values).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": []}, "knows only 0 words"),
        ({"words": ["好"] * 12}, 'words holds "好" twice'),
        ({"words": [1] * 12}, "words holds an entry that is no text"),
        ({"characters": None}, "can't be read as a tokenizer of words"),
        ({"longest_word": 0}, "at most 0 characters"),
        ({"probe": ["小", "明"]}, "cuts texts otherwise"),
    ],
)
def test_a_damaged_tokenizer_is_refused(
    tokenizer: WordTokenizer, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    tokenizer.save(tmp_path)
    path = tmp_path / "tokenizer.json"
    settings = read_json(path)
    write_json(path, {"model": {**settings["model"], **change}})
    with pytest.raises(BadInput, match=message):
        load_tokenizer(tmp_path, max_length=16)
