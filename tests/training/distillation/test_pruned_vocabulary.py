import json
from pathlib import Path
from typing import Any

import pytest
import torch
from starts import tiny_start
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

from model.architectures.foreign_weights import load_encoder
from model.files import read_json, write_json
from model.tokenization import subwords
from model.types import Text
from training.distillation.vocabulary import pruned, scripts_of

CHARACTERS = "房间很干净酒店早餐。abcдомがか12"
CHINESE = frozenset({"CJK"})


@pytest.fixture
def wordpiece(tmp_path: Path) -> Path:
    return tiny_start(tmp_path / "wordpiece", CHARACTERS)


@pytest.fixture
def unigram(tmp_path: Path) -> Path:
    """A vocabulary as XLM-R has it: its special tokens are not the first ones, and it pads with 2."""
    pieces = ["д", "ом", "<pad>", "<s>", "房间", "很", "干净", "</s>", "<unk>", "▁", "a", "。", "か", *"酒店早餐服务员"]
    engine = Tokenizer(models.Unigram([(piece, -float(n)) for n, piece in enumerate(pieces)], unk_id=8))
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    engine.decoder = decoders.Metaspace()
    engine.add_special_tokens(["<pad>", "<s>", "</s>", "<unk>"])
    engine.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 3), ("</s>", 7)]
    )
    folder = tmp_path / "unigram"
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
        pad_token_id=2,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    engine.save(str(folder / "tokenizer.json"))
    settings = {"pad_token": "<pad>", "unk_token": "<unk>", "added_tokens_decoder": {"3": {"content": "<s>"}}}
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **settings})
    return folder


def states(folder: Path, text: Text) -> torch.Tensor:
    (encoded,) = subwords.load(folder, max_length=32).encode([text])
    inputs = {name: torch.from_numpy(values)[None] for name, values in encoded.inputs.items()}
    encoder: Any = load_encoder(folder).eval()
    with torch.inference_mode():
        hidden: torch.Tensor = encoder(**inputs).last_hidden_state
    return hidden


def test_scripts_are_those_of_letters() -> None:
    assert scripts_of([Text("房间 12。"), Text("好", "ok！")]) == {"CJK", "LATIN"}
    assert scripts_of([Text("дом か")]) == {"CYRILLIC", "HIRAGANA"}


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_texts_of_the_scripts_that_stay_are_read_as_before(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(kind)
    smaller = pruned(folder, CHINESE, cache=tmp_path / "cache")
    assert subwords.vocabulary_size(smaller) < subwords.vocabulary_size(folder)
    assert load_encoder(smaller).config.vocab_size == subwords.vocabulary_size(smaller)
    for text in (Text("房间很干净。"), Text("房间很", "干净。"), Text("很12")):
        assert torch.equal(states(folder, text), states(smaller, text)), text
    vocabulary = subwords.read_engine(smaller).get_vocab()
    assert not {"a", "д", "か"} & vocabulary.keys()
    assert pruned(folder, CHINESE, cache=tmp_path / "cache") == smaller


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_what_is_left_is_what_transformers_reads(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    smaller = pruned(request.getfixturevalue(kind), CHINESE, cache=tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(smaller)
    (ours,) = subwords.load(smaller, max_length=32).encode([Text("房间很干净。")])
    assert tokenizer("房间很干净。")["input_ids"] == ours.inputs["input_ids"].tolist()
    model = AutoModel.from_pretrained(smaller)
    assert model.config.vocab_size == len(tokenizer) == model.embeddings.word_embeddings.num_embeddings
    assert model.embeddings.word_embeddings.padding_idx == tokenizer.pad_token_id


def test_nothing_is_written_where_nothing_falls_away(wordpiece: Path, tmp_path: Path) -> None:
    scripts = frozenset({"CJK", "LATIN", "CYRILLIC", "HIRAGANA"})
    assert pruned(wordpiece, scripts, cache=tmp_path / "cache") == wordpiece
    assert not (tmp_path / "cache").exists()


def test_pieces_that_its_own_rules_never_make_fall_away(wordpiece: Path, tmp_path: Path) -> None:
    described = read_json(wordpiece / "tokenizer.json")
    described["normalizer"] = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    }
    described["model"]["vocab"]["##房"] = len(described["model"]["vocab"])
    (wordpiece / "tokenizer.json").write_text(json.dumps(described), encoding="utf-8")
    encoder: Any = load_encoder(wordpiece)
    encoder.resize_token_embeddings(len(described["model"]["vocab"]))
    encoder.save_pretrained(wordpiece)
    everything = frozenset({"CJK", "LATIN", "CYRILLIC", "HIRAGANA"})
    left = subwords.read_engine(pruned(wordpiece, everything, cache=tmp_path)).get_vocab()
    assert "房" in left
    assert "##房" not in left


def test_a_vocabulary_of_bytes_stays_as_it_is(tmp_path: Path) -> None:
    Tokenizer(models.BPE({"a": 0}, [])).save(str(tmp_path / "tokenizer.json"))
    assert pruned(tmp_path, CHINESE, cache=tmp_path) == tmp_path
