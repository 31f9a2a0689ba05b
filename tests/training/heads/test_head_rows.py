import json
from pathlib import Path

import numpy as np
import pytest
from bundles import character_tokenizer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from model.errors import BadInput
from training.heads.choices import MultipleChoice
from training.heads.data import WindowTokenizer, overlapping, read_rows
from training.heads.spans import AnswerSpans
from training.heads.tokens import TokenLabelling

TEXT = "在大房间干净，早餐好，有时服务员快"


def windows(folder: Path, *, max_length: int, stride: int) -> WindowTokenizer:
    character_tokenizer().save(str(folder / "tokenizer.json"))
    return WindowTokenizer.load(folder, max_length=max_length, stride=stride)


@pytest.mark.parametrize(("max_length", "stride"), [(8, 1), (8, 3), (8, 6), (9, 100), (40, 20)])
def test_windows_hold_every_token_and_know_its_place(max_length: int, stride: int, tmp_path: Path) -> None:
    texts = [TEXT[: place + 1] for place in range(len(TEXT))]
    engine = character_tokenizer()
    for text, found in zip(texts, windows(tmp_path, max_length=max_length, stride=stride).read(texts), strict=True):
        seen = np.zeros(len(text), np.int64)
        for window in found.windows:
            assert window.encoded.length <= max_length
            ids = window.encoded.inputs["input_ids"]
            assert [engine.id_to_token(ids[0]), engine.id_to_token(ids[-1])] == ["[CLS]", "[SEP]"]
            for place in range(window.count):
                begin, end = found.offsets[window.first + place]
                assert text[begin:end] == engine.id_to_token(ids[window.at + place])
                seen[window.first + place] += 1
        assert seen.min() == 1
        starts = [window.first for window in found.windows]
        assert set(np.diff(starts)) <= {min(stride, max_length - 2)}
        assert len(starts) == 1 or starts[-2] + max_length - 2 < len(text)  # no window adds nothing


def test_a_question_is_in_every_window_and_cut_to_half_of_it(tmp_path: Path) -> None:
    tokenizer = windows(tmp_path, max_length=13, stride=2)
    short, long = tokenizer.read([TEXT, TEXT], ["好不好？", TEXT])
    for found, n_asked, truncated in ((short, 4, False), (long, 5, True)):
        for window in found.windows:
            assert window.encoded.truncated is truncated
            assert window.at == n_asked + 2
            types = window.encoded.inputs["token_type_ids"]
            assert types.tolist() == [0] * window.at + [1] * (window.count + 1)
            assert window.encoded.length <= 13
            asked = found.windows[0].encoded.inputs["input_ids"][: window.at]
            assert window.encoded.inputs["input_ids"][: window.at].tolist() == asked.tolist()
    assert [window.row for window in long.windows] == [1] * len(long.windows)


def unigram(folder: Path) -> Path:
    """A tokenizer that puts spaces into the tokens behind them, and has tokens of several characters."""
    pieces = [("<pad>", 0.0), ("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), ("▁", -2.0), ("▁在", -2.0)]
    pieces += [("北京", -2.0), ("日电讯", -2.0), ("ok", -2.0)]
    pieces += [(character, -9.0) for character in "在北京我他你中上下日电ok:1"] + [(":1", -2.0)]
    engine = Tokenizer(models.Unigram(pieces, unk_id=1))
    engine.normalizer = normalizers.NFKC()
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    engine.add_special_tokens(["<pad>", "<unk>", "<s>", "</s>"])
    engine.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)]
    )
    engine.save(str(folder / "tokenizer.json"))
    return folder


def test_tokens_of_unigram_vocabularies_leave_out_the_spaces_that_they_begin_with(tmp_path: Path) -> None:
    text = "我 在 北京"
    (found,) = WindowTokenizer.load(unigram(tmp_path), max_length=32, stride=16).read([text])
    assert [text[begin:end] for begin, end in found.offsets] == ["", "我", "在", "", "北京"]
    assert overlapping(found.offsets, 3, 6).tolist() == [4]


def test_tokens_become_characters_where_the_vocabulary_has_them(tmp_path: Path) -> None:
    text = "我 在北京 ｏｋ：1日电讯"
    tokenizer = WindowTokenizer.load(unigram(tmp_path), max_length=32, stride=16, by_character=True)
    (found,) = tokenizer.read([text])
    shown = [text[begin:end] for begin, end in found.offsets]
    assert shown == ["", "我", "在", "北", "京", "", "ｏｋ", "：", "1", "日电讯"]  # 讯 is not in it
    engine = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    ids = found.windows[0].encoded.inputs["input_ids"]
    assert [engine.id_to_token(ids[place]) for place in (4, 5, 7)] == ["北", "京", "ok"]


GOOD = {
    "tokens": {"text": "房间好", "entities": [{"start": 0, "end": 2, "label": "物"}]},
    "span": {"question": "好？", "context": "房间好", "answer": {"start": 0, "text": "房间"}},
    "choice": {"text": "房间", "choices": ["好", "坏"], "answer": 0},
}
PARSERS = {"tokens": TokenLabelling.parse, "span": AnswerSpans.parse, "choice": MultipleChoice.parse}


def entities(*places: tuple[object, object, object]) -> dict[str, object]:
    return {"entities": [{"start": start, "end": end, "label": label} for start, end, label in places]}


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ("tokens", {"text": None}, '"text" is None; it has to be a text'),
        ("tokens", {"text": " \n"}, '"text" is empty'),
        ("tokens", {"text": "房\ud800"}, "half a character .* at 1"),
        ("tokens", {"entities": None}, r'no list of "entities"; give \[\] for a text without any'),
        ("tokens", {"entities": ["房间"]}, "an entity is '房间'"),
        ("tokens", entities((0, 4, "物")), "entity 0 to 4 .物. is not in the text of 3 characters"),
        ("tokens", entities((-2, 2, "物")), "entity -2 to 2 .物. is not in the text"),
        ("tokens", entities((2, 2, "物")), "entity 2 to 2 .物. is not in the text"),
        ("tokens", entities((0, 2.0, "物")), '"end" is 2.0; it has to be a whole number'),
        ("tokens", entities((False, 2, "物")), '"start" is False; it has to be a whole number'),
        ("tokens", entities((0, 2, "")), '"label" is empty'),
        ("tokens", {"text": "房 好", **entities((1, 2, "物"))}, "holds no character but spaces"),
        (
            "tokens",
            entities((1, 3, "物"), (0, 2, "物")),
            "'房间' .0 to 2, 物. and '间好' .1 to 3, 物. overlap; keep one",
        ),
        ("tokens", entities((0, 2, "物"), (0, 2, "地")), "overlap; keep one"),
        ("span", {"question": 3}, '"question" is 3; it has to be a text'),
        ("span", {"context": ""}, '"context" is empty'),
        ("span", {"answer": "房间"}, "\"answer\" is '房间'; it has to be an object"),
        (
            "span",
            {"answer": {"start": 1, "text": "房间"}},
            "the answer is '房间' at 1, but the context has '间好' there",
        ),
        ("span", {"answer": {"start": -3, "text": "房间"}}, "the answer is '房间' at -3"),
        ("span", {"answer": {"start": 0}}, '"text" is None; it has to be a text'),
        ("choice", {"choices": ["好"]}, 'no list of at least two "choices"'),
        ("choice", {"choices": ["好", 2]}, r'"choices\[1\]" is 2; it has to be a text'),
        ("choice", {"answer": 2}, '"answer" is 2, but the 2 choices count from 0 to 1'),
        ("choice", {"answer": -1}, '"answer" is -1, but the 2 choices'),
        ("choice", {"answer": "0"}, "\"answer\" is '0'; it has to be a whole number"),
    ],
)
def test_rows_that_cannot_be_used_are_told_with_file_and_line(
    task: str, changes: dict[str, object], message: str, tmp_path: Path
) -> None:
    lines = [json.dumps(GOOD[task], ensure_ascii=False), "", json.dumps({**GOOD[task], **changes})]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(BadInput, match=rf"rows\.jsonl, line 3: .*{message}"):
        read_rows(path, lambda data: PARSERS[task](data, labelled=True))


@pytest.mark.parametrize("task", GOOD)
def test_every_key_is_asked_for(task: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for key in GOOD[task]:
        row = {name: value for name, value in GOOD[task].items() if name != key}
        path.write_text(json.dumps(row), encoding="utf-8")
        with pytest.raises(BadInput, match=f'line 1: .*"{key}"'):
            read_rows(path, lambda data: PARSERS[task](data, labelled=True))
    answer = {"tokens": "entities"}.get(task, "answer")
    path.write_text(json.dumps({**GOOD[task], answer: "neither read nor checked"}), encoding="utf-8")
    assert len(read_rows(path, lambda data: PARSERS[task](data, labelled=False))) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no rows; it takes one JSON object a line"),
        (b"\n \n", "holds no rows"),
        ('{"text": "房"'.encode(), "line 1 is not JSON"),
        (b'["a"]', "line 1 is a JSON list; it takes one object a line"),
        (b"[" * 100_000, "line 1 is not JSON"),
        ('{"text": "房间"}'.encode("gb18030"), "line 1: byte 0xb7 is not UTF-8; save the file as UTF-8"),
        ('{"text": "房间"}'.encode("utf-16"), "line 1: byte 0xff is not UTF-8"),
    ],
)
def test_files_that_hold_no_rows_say_so(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        read_rows(path, lambda data: data)
    with pytest.raises(BadInput, match="none can't be read: No such file"):
        read_rows(tmp_path / "none", lambda data: data)


def test_a_byte_order_mark_is_no_part_of_the_first_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "房间"}\n{"text": "酒店"}\n', encoding="utf-8-sig")
    assert [row["text"] for row in read_rows(path, lambda data: data)] == ["房间", "酒店"]
