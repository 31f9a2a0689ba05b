import resource
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from model.errors import BadInput
from model.tokenization import load_tokenizer
from model.tokenization.base import collate
from model.types import Text
from tests.bundles import SPECIAL, character_tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    character_tokenizer().save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_a_text_becomes_the_ids_of_its_characters_in_the_frame_of_bert(folder: Path) -> None:
    (encoded,) = load_tokenizer(folder, max_length=16).encode([Text("好坏")])
    vocabulary = character_tokenizer().get_vocab()
    expected = [vocabulary["[CLS]"], vocabulary["好"], vocabulary["坏"], vocabulary["[SEP]"]]
    assert encoded.inputs["input_ids"].tolist() == expected
    assert encoded.inputs["attention_mask"].tolist() == [1, 1, 1, 1]
    assert encoded.inputs["token_type_ids"].tolist() == [0, 0, 0, 0]
    assert not encoded.truncated


def test_a_pair_is_told_apart_by_its_types(folder: Path) -> None:
    pair, text = load_tokenizer(folder, max_length=16).encode([Text("好", "坏"), Text("好")])
    assert pair.inputs["token_type_ids"].tolist() == [0, 0, 0, 1, 1]
    assert text.length == 3


@pytest.mark.parametrize(("length", "truncated"), [(6, False), (7, True), (5_000, True)])
def test_a_text_is_cut_to_what_the_model_reads_and_says_so(folder: Path, length: int, truncated: bool) -> None:
    (encoded,) = load_tokenizer(folder, max_length=8).encode([Text("好" * length)])
    assert (encoded.length, encoded.truncated) == (8, truncated)


def test_a_pair_that_is_too_long_keeps_some_of_both(folder: Path) -> None:
    (encoded,) = load_tokenizer(folder, max_length=11).encode([Text("好" * 20, "坏" * 20)])
    assert encoded.truncated
    assert encoded.length == 11
    assert encoded.inputs["token_type_ids"].sum() == 5


def test_a_batch_is_padded_with_the_padding_token_of_the_vocabulary(folder: Path) -> None:
    tokenizer = load_tokenizer(folder, max_length=16)
    batch = collate(tokenizer.encode([Text("好"), Text("好坏好")]), tokenizer.padding)
    assert batch["input_ids"].shape == (2, 5)
    assert batch["input_ids"][0, 3:].tolist() == [character_tokenizer().token_to_id("[PAD]")] * 2
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]


def test_padding_that_the_file_asks_for_gives_the_id_and_pads_nothing_yet(tmp_path: Path) -> None:
    tokenizer = character_tokenizer()
    tokenizer.enable_padding(length=32, pad_id=1)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    loaded = load_tokenizer(tmp_path, max_length=16)
    assert loaded.padding["input_ids"] == 1
    assert loaded.encode([Text("好")])[0].length == 3


def test_threads_share_a_tokenizer(folder: Path) -> None:
    tokenizer = load_tokenizer(folder, max_length=64)
    texts = [Text("好坏" * (number % 30 + 1)) for number in range(200)]
    alone = [item.inputs["input_ids"].tolist() for item in tokenizer.encode(texts)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda text: tokenizer.encode([text])[0].inputs["input_ids"].tolist(), texts))
    assert together == alone


def test_a_vocabulary_of_special_tokens_only_is_refused(tmp_path: Path) -> None:
    engine = Tokenizer(models.WordLevel({token: row for row, token in enumerate(SPECIAL)}, unk_token="[UNK]"))
    engine.add_special_tokens(SPECIAL)
    engine.pre_tokenizer = pre_tokenizers.Whitespace()
    engine.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(BadInput, match="knows only 0 tokens"):
        load_tokenizer(tmp_path, max_length=16)


def test_a_vocabulary_without_padding_is_refused(tmp_path: Path) -> None:
    vocabulary = {character: row for row, character in enumerate("一二三四五六七八九十百千")}
    Tokenizer(models.WordLevel(vocabulary, unk_token="一")).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(BadInput, match="no padding token"):
        load_tokenizer(tmp_path, max_length=16)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"model": {"type": "WordPiece"}}'])
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(BadInput, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path, max_length=16)


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"has no tokenizer\.json"):
        load_tokenizer(tmp_path, max_length=16)


@pytest.mark.parametrize("max_length", [5, 8, 9, 16, 40])
@pytest.mark.parametrize("frame", ["bert", "roberta", "before", "none"])
def test_texts_are_framed_and_cut_as_the_vocabulary_s_own_engine_does(
    frame: str, max_length: int, tmp_path: Path
) -> None:
    engine = character_tokenizer()
    if frame == "roberta":  # two tokens in the middle, and no types
        engine.post_processor = processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2))
    elif frame == "before":
        engine.post_processor = processors.TemplateProcessing(
            single="[CLS]:1 $A", pair="[CLS]:1 $A [SEP]:1 $B", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    elif frame == "none":
        engine.post_processor = processors.Sequence([])
    engine.save(str(tmp_path / "tokenizer.json"))
    engine.enable_truncation(max_length)
    lengths = (1, 5, 6, 20, 21)
    texts = [Text("好" * one, other and "坏" * other) for one in lengths for other in (None, *lengths)]
    for text, encoded in zip(texts, load_tokenizer(tmp_path, max_length=max_length).encode(texts), strict=True):
        expected = engine.encode(text.text, text.pair)
        assert encoded.inputs["input_ids"].tolist() == expected.ids
        assert encoded.inputs["token_type_ids"].tolist() == expected.type_ids
        assert encoded.inputs["attention_mask"].tolist() == expected.attention_mask
        assert encoded.truncated == bool(expected.overflowing)


def test_two_very_long_texts_take_no_more_memory_than_their_tokens(folder: Path) -> None:
    tokenizer = load_tokenizer(folder, max_length=32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (encoded,) = tokenizer.encode([Text("好" * 20_000, "坏" * 20_000)])
    assert (encoded.length, encoded.truncated) == (32, True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "KiB; it took tens of gigabytes"
