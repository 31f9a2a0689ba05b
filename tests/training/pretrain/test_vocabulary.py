import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from made_corpora import CHARACTERS, made_documents, opened
from tokenizers import Tokenizer
from transformers import AutoTokenizer, BertConfig

from model.errors import BadInput
from model.files import read_json, write_json
from model.tokenization import load_tokenizer, words
from model.types import Text
from training.pretrain.vocabulary import take_tokenizer, take_vocabulary, train_wordpiece, train_words
from training.pretrain.wordpiece import SPECIAL_TOKENS

ENGLISH = ["linux kernel", "linux kernels", "kernel 2019", "Café linux", "the linux kernel"]
TOKENS = [*SPECIAL_TOKENS, *CHARACTERS[:40], "，", "。"]
AGAIN = """
import sys
from pathlib import Path
from training.pretrain.corpus import Corpus
from training.pretrain.survey import survey
from training.pretrain.vocabulary import train_wordpiece, train_words
corpus = Corpus.open([Path(sys.argv[1])])
found = survey(corpus, seed=1, share=0.05)
train_wordpiece(corpus, found, size=150, folder=Path(sys.argv[2]))
train_words(corpus, found, n_words=60, n_characters=60, folder=Path(sys.argv[3]))
"""


def mixed_documents(n: int) -> list[list[str]]:
    """Chinese with English between."""
    return [[f"{text[0]}{ENGLISH[number % len(ENGLISH)]}，", *text] for number, text in enumerate(made_documents(n))]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vocabulary of 150 tokens; the figures of it in record.json."""
    folder = tmp_path_factory.mktemp("trained")
    corpus, found = opened(folder, mixed_documents(200))
    write_json(folder / "record.json", train_wordpiece(corpus, found, size=150, folder=folder))
    return folder


def vocab_txt(path: Path, tokens: list[str]) -> Path:
    path.write_text("\n".join(tokens) + "\n", encoding="utf-8")
    return path


def test_characters_stand_alone_and_latin_words_are_cut_in_pieces(trained: Path) -> None:
    engine = Tokenizer.from_file(str(trained / "tokenizer.json"))
    assert engine.encode("天地linux kernels，2019鑫人", add_special_tokens=False).tokens == [
        *"天地", "linux", "kernels", "，", "2019", "[UNK]", "人",
    ]  # fmt: skip
    assert engine.encode("LINUX Café", add_special_tokens=False).tokens == ["linux", "cafe"]
    pieces = engine.encode("kernelsel", add_special_tokens=False).tokens
    assert len(pieces) > 1
    assert pieces[0].startswith("kernel")
    assert all(piece.startswith("##") for piece in pieces[1:])


def test_a_vocabulary_has_so_many_tokens_the_special_ones_first(trained: Path) -> None:
    ids = Tokenizer.from_file(str(trained / "tokenizer.json")).get_vocab()
    tokens = sorted(ids, key=ids.__getitem__)
    assert sorted(ids.values()) == list(range(len(tokens)))
    assert tokens[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert set(CHARACTERS) <= set(tokens)
    record = read_json(trained / "record.json")
    assert record["tokens"] == len(tokens) <= 150
    assert record["covered"] == 1


def test_a_small_vocabulary_keeps_the_most_frequent_characters(tmp_path: Path) -> None:
    rare = "甲乙丙丁" * 30
    documents = [[*text, rare[number : number + 1]] for number, text in enumerate(made_documents(100))]
    corpus, found = opened(tmp_path, documents)
    record = train_wordpiece(corpus, found, size=100, folder=tmp_path)
    counts = Counter(character for document in found.train(corpus) for text in document for character in text)
    best = {character for character, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:71]}
    vocabulary = Tokenizer.from_file(str(tmp_path / "tokenizer.json")).get_vocab().keys()
    assert {token for token in vocabulary if len(token) == 1} == best
    assert record["covered"] == pytest.approx(sum(counts[one] for one in best) / counts.total(), abs=1e-6)


def test_held_out_documents_are_not_counted(tmp_path: Path) -> None:
    documents = [[text, chr(0x5E00 + number) * 5] for number, (text, *_) in enumerate(made_documents(40))]
    corpus, found = opened(tmp_path, documents, share=0.3)
    train_wordpiece(corpus, found, size=400, folder=tmp_path)
    vocabulary = Tokenizer.from_file(str(tmp_path / "tokenizer.json")).get_vocab()
    kept = {ord(token) - 0x5E00 for token in vocabulary if len(token) == 1 and 0x5E00 <= ord(token) < 0x5E28}
    train = {ord(document[-1][0]) - 0x5E00 for document in found.train(corpus)}
    assert 10 < len(train) < 40
    assert kept == train


def test_our_tokenizer_and_that_of_transformers_read_it_alike(trained: Path) -> None:
    BertConfig(vocab_size=150).save_pretrained(trained)
    theirs = AutoTokenizer.from_pretrained(trained)
    (ours,) = load_tokenizer(trained, max_length=32).encode([Text("天地 Linux", "人kernel")])
    encoded = theirs("天地 Linux", "人kernel")
    assert {name: values.tolist() for name, values in ours.inputs.items()} == dict(encoded)
    assert theirs.convert_ids_to_tokens(encoded["input_ids"]) == [
        "[CLS]", "天", "地", "linux", "[SEP]", "人", "kernel", "[SEP]",
    ]  # fmt: skip
    assert (theirs.mask_token, theirs.pad_token_id, len(theirs)) == (
        "[MASK]",
        0,
        read_json(trained / "record.json")["tokens"],
    )


def test_the_same_corpus_gives_the_same_vocabularies_in_another_process(tmp_path: Path) -> None:
    corpus, found = opened(tmp_path, mixed_documents(200))
    train_wordpiece(corpus, found, size=150, folder=tmp_path / "a")
    train_words(corpus, found, n_words=60, n_characters=60, folder=tmp_path / "b")
    arguments = [tmp_path / "corpus.txt", tmp_path / "c", tmp_path / "d"]
    subprocess.run([sys.executable, "-c", AGAIN, *map(str, arguments)], check=True, capture_output=True)
    for one, other in (("a", "c"), ("b", "d")):
        file, again = (tmp_path / name / "tokenizer.json" for name in (one, other))
        assert file.read_bytes() == again.read_bytes()


def test_of_a_huge_corpus_a_sample_is_counted_and_the_record_says_so(tmp_path: Path) -> None:
    documents = [[*text, chr(0x5E00 + number) * 5] for number, text in enumerate(made_documents(200))]
    corpus, found = opened(tmp_path, documents)
    record = train_wordpiece(corpus, found, size=1_000, folder=tmp_path, sample_characters=found.characters // 4)
    assert record["counted_characters"] == found.characters // 4
    vocabulary = Tokenizer.from_file(str(tmp_path / "tokenizer.json")).get_vocab()
    assert 30 < sum(len(token) == 1 and 0x5E00 <= ord(token) < 0x5EC8 for token in vocabulary) < 70


def test_words_are_those_of_jieba_most_frequent_first(tmp_path: Path) -> None:
    sentences = ["今天天气很好，我们去公园。", "今天我们去公园散步。", "我们喜欢这本新书。"]
    documents = [[sentences[number % 3], f"第{number}天。"] for number in range(60)]
    corpus, found = opened(tmp_path, documents)
    record = train_words(corpus, found, n_words=20, n_characters=30, folder=tmp_path)
    tokenizer = words.load(tmp_path, max_length=10)
    assert tokenizer.vocabulary_size == record["tokens"] == 20
    assert tokenizer.n_characters == record["characters"] == 30
    assert tokenizer.words[0] == "。"
    assert set(tokenizer.words) >= {"我们", "今天", "公园"}
    assert 0.7 < record["covered"] < 1


def test_a_vocabulary_file_is_taken_in_its_order(tmp_path: Path) -> None:
    tokens = [*TOKENS[5:15], *TOKENS[:5], *TOKENS[15:], "linux", "##s"]
    record = take_vocabulary(vocab_txt(tmp_path / "vocab.txt", tokens), tmp_path / "taken")
    engine = Tokenizer.from_file(str(tmp_path / "taken" / "tokenizer.json"))
    assert [engine.id_to_token(number) for number in range(engine.get_vocab_size())] == tokens
    encoded = engine.encode("天Linuxs。")
    assert encoded.tokens == ["[CLS]", "天", "linux", "##s", "。", "[SEP]"]
    assert record == {"kind": "vocab.txt", "tokens": len(tokens), "lower_case": True}


def test_a_vocabulary_file_with_capital_letters_keeps_case(tmp_path: Path) -> None:
    letters = [chr(point) for point in range(ord("A"), ord("Z") + 1)]
    record = take_vocabulary(vocab_txt(tmp_path / "vocab.txt", [*TOKENS, *letters]), tmp_path / "taken")
    assert record["lower_case"] is False
    engine = Tokenizer.from_file(str(tmp_path / "taken" / "tokenizer.json"))
    assert engine.encode("天A", add_special_tokens=False).tokens == ["天", "A"]


@pytest.mark.parametrize("missing", SPECIAL_TOKENS)
def test_a_vocabulary_file_without_a_special_token_is_refused(tmp_path: Path, missing: str) -> None:
    path = vocab_txt(tmp_path / "vocab.txt", [token for token in TOKENS if token != missing])
    with pytest.raises(BadInput, match=rf"vocab\.txt lacks \{missing}"):
        take_vocabulary(path, tmp_path / "taken")
    assert not (tmp_path / "taken").exists()


def test_a_vocabulary_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    with pytest.raises(BadInput, match="is not there"):
        take_vocabulary(path, tmp_path / "taken")
    with pytest.raises(BadInput, match="holds '天' in line 6 and in line 48"):
        take_vocabulary(vocab_txt(path, [*TOKENS, "天"]), tmp_path / "taken")
    with pytest.raises(BadInput, match="has only 9 tokens"):
        take_vocabulary(vocab_txt(path, TOKENS[:9]), tmp_path / "taken")
    path.write_bytes("\n".join(TOKENS).encode("gb18030"))
    with pytest.raises(BadInput, match="has to be UTF-8"):
        take_vocabulary(path, tmp_path / "taken")


def test_a_size_without_room_and_a_corpus_without_characters_are_refused(tmp_path: Path) -> None:
    corpus, found = opened(tmp_path, [["天地天地。"], ["人人"], ["日日"]])
    with pytest.raises(BadInput, match="a vocabulary of 20 tokens is too small"):
        train_wordpiece(corpus, found, size=20, folder=tmp_path)
    with pytest.raises(BadInput, match="characters that occur twice"):
        train_wordpiece(corpus, found, size=1_000, folder=tmp_path)


def test_a_start_gives_its_tokenizer_as_it_is(trained: Path, tmp_path: Path) -> None:
    assert take_tokenizer(trained, tmp_path / "a") == {"kind": "start", "name": trained.name}
    assert (tmp_path / "a" / "tokenizer.json").read_bytes() == (trained / "tokenizer.json").read_bytes()
    old = tmp_path / "old"
    old.mkdir()
    vocab_txt(old / "vocab.txt", TOKENS)
    assert take_tokenizer(old, tmp_path / "b")["kind"] == "vocab.txt"
    with pytest.raises(BadInput, match=r"has no tokenizer\.json and no vocab\.txt"):
        take_tokenizer(tmp_path, tmp_path / "c")
