from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer

from model.errors import BadInput
from model.files import write_json
from model.tokenization import gpt_frame, load_tokenizer
from model.tokenization.subwords import SubwordTokenizer
from model.types import Text
from tests.bundles import character_tokenizer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A start whose vocabulary has the frame of BERT."""
    character_tokenizer().save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def tokens(tokenizer: SubwordTokenizer, text: Text, name: str = "input_ids") -> str:
    engine = Tokenizer.from_str(tokenizer._engine.to_str())
    (encoded,) = tokenizer.encode([text])
    return " ".join(engine.id_to_token(token_id) for token_id in encoded.inputs[name])


def test_texts_and_pairs_stand_in_the_frame_of_the_paper(folder: Path) -> None:
    tokenizer = gpt_frame.load(folder, max_length=16)
    assert tokens(tokenizer, Text("好坏")) == "[START] 好 坏 [EXTRACT]"
    assert tokens(tokenizer, Text("好坏", "快")) == "[START] 好 坏 [DELIMITER] 快 [EXTRACT]"
    (encoded,) = tokenizer.encode([Text("好")])
    assert {*encoded.inputs} == {*tokenizer.padding} == {"input_ids", "attention_mask"}


def test_similarity_gives_both_orders_of_a_pair(folder: Path) -> None:
    tokenizer = gpt_frame.load(folder, max_length=16, similarity=True)
    pair = Text("好坏", "快")
    assert tokens(tokenizer, pair) == "[START] 好 坏 [DELIMITER] 快 [EXTRACT]"
    assert tokens(tokenizer, pair, "swapped_ids") == "[START] 快 [DELIMITER] 好 坏 [EXTRACT]"
    assert tokens(tokenizer, Text("好")) == tokens(tokenizer, Text("好"), "swapped_ids")
    assert tokenizer.padding["swapped_ids"] == tokenizer.padding["input_ids"]


@pytest.mark.parametrize("max_length", [8, 9])
@pytest.mark.parametrize("pair", [Text("好" * 20, "坏快"), Text("坏快", "好" * 20)])
def test_a_pair_that_is_too_long_loses_the_end_of_the_longer_text(folder: Path, pair: Text, max_length: int) -> None:
    tokenizer = gpt_frame.load(folder, max_length=max_length, similarity=True)
    kept = " ".join("好" * (max_length - 5))
    both = {f"[START] {kept} [DELIMITER] 坏 快 [EXTRACT]", f"[START] 坏 快 [DELIMITER] {kept} [EXTRACT]"}
    assert {tokens(tokenizer, pair), tokens(tokenizer, pair, "swapped_ids")} == both
    assert tokenizer.encode([pair])[0].truncated


@pytest.mark.parametrize("max_length", [8, 9, 40])
@pytest.mark.parametrize("lengths", [(1, 1), (20, 20), (3, 30), (19, 20)])
def test_both_orders_are_as_long_as_each_other(folder: Path, lengths: tuple[int, int], max_length: int) -> None:
    tokenizer = gpt_frame.load(folder, max_length=max_length, similarity=True)
    (encoded,) = tokenizer.encode([Text("好" * lengths[0], "坏" * lengths[1])])
    expected = min(sum(lengths) + 3, max_length)
    assert [len(values) for values in encoded.inputs.values()] == [expected] * 3


def test_a_text_that_is_too_long_keeps_its_extract_token(folder: Path) -> None:
    tokenizer = gpt_frame.load(folder, max_length=5)
    assert tokens(tokenizer, Text("好坏快慢")) == "[START] 好 坏 快 [EXTRACT]"


@pytest.mark.parametrize("similarity", [False, True])
def test_the_frame_survives_saving(folder: Path, similarity: bool, tmp_path: Path) -> None:
    framed = gpt_frame.load(folder, max_length=6, similarity=similarity)
    (tmp_path / "saved").mkdir()
    framed.save(tmp_path / "saved")
    loaded = load_tokenizer(tmp_path / "saved", max_length=9)
    assert loaded.padding == framed.padding
    text = Text("好坏快慢", "的一是")
    for name in framed.padding.keys() - {"attention_mask"}:
        assert tokens(loaded, text, name) == tokens(gpt_frame.load(folder, max_length=9, similarity=True), text, name)


def test_transformers_reads_a_saved_frame_alike(folder: Path, tmp_path: Path) -> None:
    framed = gpt_frame.load(folder, max_length=16, similarity=True)
    (tmp_path / "saved").mkdir()
    framed.save(tmp_path / "saved")
    theirs = AutoTokenizer.from_pretrained(tmp_path / "saved")
    (encoded,) = framed.encode([Text("好坏", "快")])
    assert theirs("好坏", "快").input_ids == encoded.inputs["input_ids"].tolist()
    assert theirs.pad_token_id == framed.padding["input_ids"]


def test_new_tokens_come_after_all_others_and_only_once(folder: Path, tmp_path: Path) -> None:
    n_tokens = character_tokenizer().get_vocab_size()
    framed = gpt_frame.load(folder, max_length=16)
    assert framed.vocabulary_size == n_tokens + 3
    (encoded,) = framed.encode([Text("好", "坏")])
    assert sorted(encoded.inputs["input_ids"])[-3:] == [n_tokens, n_tokens + 1, n_tokens + 2]
    (tmp_path / "saved").mkdir()
    framed.save(tmp_path / "saved")
    again = gpt_frame.load(tmp_path / "saved", max_length=16)
    assert again.vocabulary_size == framed.vocabulary_size
    assert again.encode([Text("好", "坏")])[0].inputs["input_ids"].tolist() == encoded.inputs["input_ids"].tolist()


def test_a_vocabulary_without_padding_gets_it(tmp_path: Path) -> None:
    vocabulary = {character: row for row, character in enumerate("一二三四五六七八九十百千")}
    engine = Tokenizer(models.BPE(vocabulary, merges=[], unk_token="一"))
    engine.pre_tokenizer = pre_tokenizers.Whitespace()
    engine.save(str(tmp_path / "tokenizer.json"))
    tokenizer = gpt_frame.load(tmp_path, max_length=16)
    assert tokenizer.padding["input_ids"] not in vocabulary.values()
    assert tokens(tokenizer, Text("二三")) == "[START] 二 三 [EXTRACT]"


def test_a_language_model_reads_texts_behind_their_start_and_fine_tuning_adds_the_rest(
    folder: Path, tmp_path: Path
) -> None:
    n_tokens = character_tokenizer().get_vocab_size()
    tokenizer = gpt_frame.load_for_pretraining(folder, max_length=16)
    assert tokens(tokenizer, Text("好坏")) == "[START] 好 坏"
    assert tokenizer.vocabulary_size == n_tokens + 1
    (tmp_path / "saved").mkdir()
    tokenizer.save(tmp_path / "saved")
    assert tokens(load_tokenizer(tmp_path / "saved", max_length=16), Text("好坏")) == "[START] 好 坏"
    (encoded,) = gpt_frame.load(tmp_path / "saved", max_length=16).encode([Text("好", "坏")])
    ids = encoded.inputs["input_ids"]
    assert (ids[0], sorted(ids)[-2:]) == (n_tokens, [n_tokens + 1, n_tokens + 2])


@pytest.mark.parametrize("content", ["[]", "{", '{"wenlei_inputs": ["pixels"]}', '{"wenlei_inputs": 3}'])
def test_settings_that_name_no_inputs_are_refused(folder: Path, content: str) -> None:
    (folder / "tokenizer_config.json").write_text(content)
    with pytest.raises(BadInput, match=r"tokenizer_config\.json"):
        load_tokenizer(folder, max_length=16)


def test_settings_of_others_change_no_inputs(folder: Path) -> None:
    write_json(folder / "tokenizer_config.json", {"model_input_names": ["input_ids"]})
    assert {*load_tokenizer(folder, max_length=16).padding} == {"input_ids", "attention_mask", "token_type_ids"}


def test_a_vocabulary_whose_ids_leave_gaps_is_refused_before_two_tokens_share_one(tmp_path: Path) -> None:
    vocabulary = {character: 2 * row for row, character in enumerate("一二三四五六七八九十百千")}
    engine = Tokenizer(models.WordLevel(vocabulary, unk_token="一"))
    engine.add_special_tokens(["[PAD]"])
    engine.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(BadInput, match=r"tokenizer\.json: \S+ and \S+ are both \d+, since its ids leave gaps"):
        gpt_frame.load(tmp_path, max_length=16)
