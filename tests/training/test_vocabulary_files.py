import json
from pathlib import Path

import pytest
from bundles import CHARACTERS
from transformers import BertTokenizer, GPT2Tokenizer, OpenAIGPTTokenizer

from model.errors import BadInput
from model.files import write_json
from model.tokenization.subwords import load
from model.types import Text
from training.vocabulary_files import convert, vocabulary_files

TOKENS = [
    *("[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *dict.fromkeys(CHARACTERS),
    *("wi", "##fi", "Wi", "##Fi", "5", "##g", "caf", "##e", "\u2028"),
]
TEXTS = ["房间WiFi很快，5G也好！", "cafe 与 Café  酒店\u3000早餐", "😀 的 𠮷", "", "服务员" * 20, "好\x00坏\u200b差"]
PAIRS = [("房间干净。", "价格贵？"), ("好", "坏" * 99)]


def vocabulary(folder: Path, tokens: list[str] = TOKENS, **settings: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    if settings:
        write_json(folder / "tokenizer_config.json", settings)
    return folder


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"do_lower_case": False},
        {"do_lower_case": True, "strip_accents": False},
        {"tokenize_chinese_chars": False},
    ],
)
def test_a_vocab_txt_gives_the_ids_that_transformers_gives(settings: dict[str, bool], tmp_path: Path) -> None:
    folder = vocabulary(tmp_path / "given", **settings)
    before = sorted(folder.iterdir())
    convert(folder, tmp_path, model_type="bert")
    assert sorted(folder.iterdir()) == before
    ids = {token: number for number, token in enumerate(TOKENS)}
    reference = BertTokenizer(vocab=ids, **settings)
    tokenizer = load(tmp_path, max_length=64)
    assert tokenizer.vocabulary_size == len(TOKENS)
    for text, pair in [*((text, None) for text in TEXTS), *PAIRS]:
        expected = reference(text, pair, truncation=True, max_length=64)
        (encoded,) = tokenizer.encode([Text(text, pair)])
        assert encoded.inputs["input_ids"].tolist() == expected["input_ids"]
        assert encoded.inputs["token_type_ids"].tolist() == expected["token_type_ids"]


def test_special_tokens_in_a_text_are_read_as_transformers_reads_them(tmp_path: Path) -> None:
    convert(vocabulary(tmp_path / "given"), tmp_path, model_type="bert")
    (encoded,) = load(tmp_path, max_length=64).encode([Text("好[MASK]坏")])
    reference = BertTokenizer(vocab={token: number for number, token in enumerate(TOKENS)})
    assert encoded.inputs["input_ids"].tolist() == reference("好[MASK]坏")["input_ids"]


def test_a_vocabulary_without_mask_and_padding_keeps_its_size(tmp_path: Path) -> None:
    fewer = [token for token in TOKENS if token not in ("[MASK]", "[PAD]")]
    convert(vocabulary(tmp_path / "given", fewer), tmp_path, model_type="bert")
    with pytest.raises(BadInput, match="no padding token"):
        load(tmp_path, max_length=64)  # here it is needed
    engine = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    assert len(engine["model"]["vocab"]) == len(fewer)
    assert len(engine["added_tokens"]) == 3


def test_byte_pairs_of_gpt_2(tmp_path: Path) -> None:
    characters = [chr(code) for code in range(33, 127)] + [chr(code) for code in range(161, 324)]
    tokens = [*characters, "å¥", "å¥½", "<|endoftext|>"]
    write_json(tmp_path / "vocab.json", {token: number for number, token in enumerate(tokens)})
    (tmp_path / "merges.txt").write_text("#version: 0.2\nå ¥\nå¥ ½\n", encoding="utf-8")
    convert(tmp_path, tmp_path, model_type="gpt2")
    reference = GPT2Tokenizer(vocab=str(tmp_path / "vocab.json"), merges=str(tmp_path / "merges.txt"))
    tokenizer = load(tmp_path, max_length=64)
    for text in ["好的 hotel", " 房间\n好", "😀<|endoftext|>"]:
        (encoded,) = tokenizer.encode([Text(text)])
        assert encoded.inputs["input_ids"].tolist() == reference(text)["input_ids"]
    assert tokens.index("å¥½") in tokenizer.encode([Text("好")])[0].inputs["input_ids"]


def test_byte_pairs_of_the_first_gpt(tmp_path: Path) -> None:
    tokens = ["<unk>", "<pad>", *"abcdehlot好", "好</w>", "t</w>", "l</w>", "ho", "hot</w>"]
    write_json(tmp_path / "vocab.json", {token: number for number, token in enumerate(tokens)})
    (tmp_path / "merges.txt").write_text("#version: 0.2\nh o\nho t</w>\n", encoding="utf-8")
    convert(tmp_path, tmp_path, model_type="openai-gpt")
    reference = OpenAIGPTTokenizer(vocab=str(tmp_path / "vocab.json"), merges=str(tmp_path / "merges.txt"))
    for text in ["HOT hotel 好好", "坏 hot"]:
        (encoded,) = load(tmp_path, max_length=64).encode([Text(text)])
        assert encoded.inputs["input_ids"].tolist() == reference(text)["input_ids"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[PAD]\n[CLS]\n[SEP]\n" + "\n".join(CHARACTERS), r"vocab\.txt lacks \[UNK\], which every text needs"),
        ("[UNK]\n[CLS]\n", "has only 2 tokens"),
    ],
)
def test_a_vocabulary_that_is_none_is_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        convert(tmp_path, tmp_path, model_type="bert")


def test_a_vocabulary_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes("\n".join(TOKENS[:-1]).encode("gb18030"))
    with pytest.raises(BadInput, match=r"vocab\.txt can't be read.*UTF-8"):
        convert(tmp_path, tmp_path, model_type="bert")


def test_merges_of_another_vocabulary_are_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "vocab.json", {"a": 0, "b": 1})
    (tmp_path / "merges.txt").write_text("x y\n")
    with pytest.raises(BadInput, match="can't be read as a vocabulary"):
        convert(tmp_path, tmp_path, model_type="gpt2")


def test_only_whole_vocabularies_are_found(tmp_path: Path) -> None:
    assert vocabulary_files(tmp_path) == []
    (tmp_path / "vocab.json").touch()
    assert vocabulary_files(tmp_path) == []
    (tmp_path / "merges.txt").touch()
    assert [path.name for path in vocabulary_files(tmp_path)] == ["vocab.json", "merges.txt"]
