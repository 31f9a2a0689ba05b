from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from bundles import character_tokenizer
from made_corpora import CHARACTERS, ENDS, files_of, made_documents, made_store, opened, vocabulary, written
from tokenizers import BertWordPieceTokenizer, normalizers

from model.errors import BadRun
from model.files import read_json, write_json
from model.tokenization.segment import segment
from model.tokenization.words import WordTokenizer, words_of
from training.pretrain.columns import Columns
from training.pretrain.corpus import Corpus
from training.pretrain.encoders import SubwordEncoder
from training.pretrain.prepare import prepare
from training.pretrain.store import TokenStore
from training.pretrain.survey import document_hash, survey
from training.pretrain.windows import Window


def texts_of(store: TokenStore, split: str, characters: str = CHARACTERS + ENDS) -> list[str]:
    """The documents of `split`, in tokens of one character."""
    found = []
    for part in store.manifest[split]:
        columns = Columns.map(store.folder / part["name"])
        for number in range(columns.n_documents):
            ids = columns.slice(number, number + 1).ids
            found.append("".join(characters[token - 4] for token in ids))
    return found


def all_windows(store: TokenStore) -> Iterator[Window]:
    for position, windows in store.batches("train", max_length=50, batch_tokens=500, seed=0):
        yield from windows
        if position.epoch:
            return


def test_a_store_holds_every_document_of_the_corpus_in_its_order(tmp_path: Path) -> None:
    documents = made_documents(120)
    store = made_store(tmp_path, documents, part_tokens=2_000)
    assert len(store.parts("train")) > 3
    train, held_out = texts_of(store, "train"), texts_of(store, "held_out")
    texts = ["".join(document) for document in documents]
    assert train == [text for text in texts if text not in set(held_out)]
    assert sorted(train + held_out) == sorted(texts)
    for split, found in (("train", train), ("held_out", held_out)):
        assert store.total(split, "documents") == len(found)
        assert store.total(split, "tokens") == store.total(split, "characters") == sum(map(len, found))
        assert store.total(split, "sentences") == sum(text.count(end) for text in found for end in ENDS)
        assert store.total(split, "unknown") == 0
    assert Columns.map(store.folder / "held-out").ids.dtype == np.uint16


def test_the_manifest_says_what_the_store_was_made_of(tmp_path: Path) -> None:
    store = made_store(tmp_path, made_documents(30))
    manifest = read_json(store.folder / "manifest.json")
    (source,) = manifest["corpus"]["sources"]
    assert source["name"] == "corpus.txt"
    assert source["bytes"] == (tmp_path / "corpus.txt").stat().st_size
    assert manifest["corpus"]["normaliser"]["width"] == "letters"
    assert manifest["survey"]["documents"] == 30
    assert manifest["vocabulary_size"] == len(CHARACTERS + ENDS) + 4
    assert set(files_of(tmp_path)) >= {"tokens/manifest.json", "tokens/held-out/ids.npy"}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_about_the_share_is_held_out_whatever_the_order_and_the_vocabulary(tmp_path: Path) -> None:
    documents = made_documents(400)
    found = []
    for name, order in (("a", documents), ("b", documents[::-1])):
        (tmp_path / name).mkdir()
        found.append(opened(tmp_path / name, order)[1])
    assert found[0].held_out == found[1].held_out
    assert 0.03 < found[0].held_out_characters / found[0].characters <= 0.05
    (tmp_path / "c").mkdir()
    assert opened(tmp_path / "c", documents, seed=2)[1].held_out != found[0].held_out


def test_at_most_so_many_characters_are_held_out(tmp_path: Path) -> None:
    corpus = Corpus.open([written(tmp_path / "a.txt", made_documents(300))])
    least = survey(corpus, seed=1, share=0.5, most=1_000)
    assert 500 < least.held_out_characters <= 1_000
    hashes = sorted(document_hash(document, 1) for document in corpus.documents())
    assert sorted(least.held_out) == hashes[: len(least.held_out)]


def test_no_copy_of_a_held_out_document_is_trained_on(tmp_path: Path) -> None:
    documents = made_documents(60)
    store = made_store(tmp_path, documents * 3)
    held_out, train = texts_of(store, "held_out"), texts_of(store, "train")
    assert len(held_out) == len(set(held_out)) >= 2
    assert set(held_out).isdisjoint(train)
    assert Counter(train) == dict.fromkeys({"".join(document) for document in documents} - set(held_out), 3)


def test_what_is_no_store_or_damaged_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRun, match="no prepared corpus"):
        TokenStore.open(tmp_path)
    store = made_store(tmp_path, made_documents(10))
    (store.folder / "train-00000" / "ids.npy").write_bytes(b"x")
    with pytest.raises(BadRun, match="train-00000 can't be read"):
        next(TokenStore.open(store.folder).batches("train", max_length=5, batch_tokens=50, seed=0))
    write_json(store.folder / "manifest.json", {**store.manifest, "format": 99})
    with pytest.raises(BadRun, match="has format 99"):
        TokenStore.open(store.folder)
    write_json(store.folder / "manifest.json", {"format": 1})
    with pytest.raises(BadRun, match="can't be understood"):
        TokenStore.open(store.folder)


def test_word_starts_are_where_words_of_jieba_begin(tmp_path: Path) -> None:
    sentence = "今天天气很好，我们去公园散步。"
    corpus, found = opened(tmp_path, [[f"{mark}{sentence}"] for mark in CHARACTERS[:6]])
    characters = "".join(dict.fromkeys(CHARACTERS + sentence.replace("步", "")))
    store = prepare(
        corpus,
        found,
        tokenizer=vocabulary(tmp_path / "tokenizer", characters),
        folder=tmp_path / "tokens",
        words=True,
    )
    for window in all_windows(store):
        text = "".join(characters[token - 4] if token > 3 else "步" for token in window.ids)
        words = segment(text)
        assert "".join(words) == text[0] + sentence
        starts = np.cumsum([0, *map(len, words[:-1])])
        assert np.flatnonzero(window.word_starts).tolist() == starts.tolist()
    assert store.total("train", "unknown") == store.total("train", "documents")


def test_pieces_of_a_word_begin_no_word(tmp_path: Path) -> None:
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "abc", "##def", "天", "气", "公", "园", "。"]
    engine = BertWordPieceTokenizer({token: number for number, token in enumerate(tokens)})
    engine.save(str(tmp_path / "tokenizer.json"))
    found = SubwordEncoder(tmp_path, segment=segment).encode([["abcdef天气 公园。Abcdef"]])
    assert [tokens[number] for number in found.ids] == [*tokens[5:], "abc", "##def"]
    assert found.word_starts is not None
    assert segment("天气 公园。") == ["天气", " ", "公园", "。"]
    assert found.word_starts.tolist() == [True, False, True, False, True, False, True, True, False]


def test_a_store_without_words_has_a_word_a_token(tmp_path: Path) -> None:
    assert all(window.word_starts.all() for window in all_windows(made_store(tmp_path, made_documents(10))))


def test_documents_and_sentences_of_which_no_token_is_left_fall_away(tmp_path: Path) -> None:
    tokenizer = character_tokenizer(CHARACTERS + ENDS)
    tokenizer.normalizer = normalizers.Replace("空。", "")
    (tmp_path / "tokenizer").mkdir()
    tokenizer.save(str(tmp_path / "tokenizer" / "tokenizer.json"))
    encoder = SubwordEncoder(tmp_path / "tokenizer")
    found = encoder.encode([["空。"], ["天地。空。人", "空。"], ["空。"], ["日月"]])
    assert found.sentences.tolist() == [0, 3, 4, 6]
    assert found.documents.tolist() == [0, 2, 3]
    assert found.characters.tolist() == [3, 1, 2]


def test_a_large_vocabulary_gets_wider_ids(tmp_path: Path) -> None:
    many = "".join(chr(0x20000 + number) for number in range(65_600))
    (tmp_path / "tokenizer").mkdir()
    character_tokenizer(many).save(str(tmp_path / "tokenizer" / "tokenizer.json"))
    corpus, found = opened(tmp_path, [[many[-5:]], [many[:5]], [many[100:120]], [many[-9:]]])
    store = prepare(corpus, found, tokenizer=tmp_path / "tokenizer", folder=tmp_path / "tokens")
    assert sorted(texts_of(store, "train", many) + texts_of(store, "held_out", many)) == sorted(
        "".join(document) for document in corpus.documents()
    )


def test_a_store_of_words_spells_every_word(tmp_path: Path) -> None:
    sentences = [
        "今天天气很好，我们去公园散步。",
        "他昨天买了一本新书；",
        "ubuntu 发行版很好用！",
        "我们 今天不去公园。",
    ]
    documents = [[sentence, sentences[(number + 1) % 4]] for number, sentence in enumerate(sentences)]
    counts = Counter(word for sentence in sentences[:2] for word in words_of(sentence))
    tokenizer = WordTokenizer.from_counts(counts, n_words=100, n_characters=100)
    (tmp_path / "tokenizer").mkdir()
    tokenizer.save(tmp_path / "tokenizer")
    corpus, found = opened(tmp_path, documents)
    store = prepare(corpus, found, tokenizer=tmp_path / "tokenizer", folder=tmp_path / "tokens", words=True)
    expected = {}
    for sentence in sentences:
        encoded = tokenizer.encode_words(words_of(sentence))
        expected[tuple(encoded.ids)] = (encoded.characters, len(sentence.replace(" ", "")))
    seen = 0
    for window in all_windows(store):
        assert window.characters is not None
        assert window.characters.shape == (window.length, tokenizer.word_length)
        total = 0
        for start, end in zip(window.sentence_starts, [*window.sentence_starts[1:], window.length], strict=True):
            characters, size = expected[tuple(window.ids[start:end])]
            assert (window.characters[start:end] == characters).all()
            total, seen = total + size, seen + 1
        assert window.n_characters == total
    assert seen == store.total("train", "sentences")
    assert store.total("train", "unknown") > 0
