"""How a corpus in tokens is made: whole or not at all, the same whoever makes it, and never twice."""

import multiprocessing
import shutil
from collections import namedtuple
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from made_corpora import CHARACTERS, files_of, made_documents, made_store, opened, vocabulary, written

from model.errors import BadInput, RuntimeUnavailable
from model.files import write_json
from training.pretrain.columns import Columns
from training.pretrain.corpus import Corpus
from training.pretrain.encoders import SubwordEncoder
from training.pretrain.prepare import prepare
from training.pretrain.store import TokenStore
from training.pretrain.survey import Survey, survey

DiskUsage = namedtuple("DiskUsage", "total used free")


def test_a_corpus_of_one_document_is_refused(tmp_path: Path) -> None:
    corpus = Corpus.open([written(tmp_path / "a.txt", [["只有一篇。"], ["只有一篇。"]])])
    with pytest.raises(BadInput, match="has 1 different documents"):
        survey(corpus, seed=1)
    with pytest.raises(BadInput, match="share of 0 leaves nothing"):
        survey(corpus, seed=1, share=0)


def test_a_store_goes_on_where_it_was_broken_off_and_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, found = opened(tmp_path, made_documents(200))
    tokenizer = vocabulary(tmp_path / "tokenizer")
    whole = prepare(corpus, found, tokenizer=tokenizer, folder=tmp_path / "whole", part_tokens=3_000)
    encode, calls = SubwordEncoder.encode, 0

    def breaking(self: SubwordEncoder, documents: Sequence[list[str]]) -> Columns:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return encode(self, documents)

    monkeypatch.setattr(SubwordEncoder, "encode", breaking)
    with pytest.raises(KeyboardInterrupt):
        prepare(corpus, found, tokenizer=tokenizer, folder=tmp_path / "broken", part_tokens=3_000)
    assert not (tmp_path / "broken").exists()
    broken = tmp_path / ".broken.building"
    assert len([path for path in broken.iterdir() if path.is_dir()]) == 3
    (broken / "train-00003").mkdir()  # as if killed between a part and the note of it
    (broken / "train-00003" / "ids.npy").write_bytes(b"half")
    prepare(corpus, found, tokenizer=tokenizer, folder=tmp_path / "broken", part_tokens=3_000)
    assert calls == 4 + len(whole.parts("train")) - 3 + 1  # the parts that were missing, and what is held out
    assert files_of(tmp_path / "broken") == files_of(tmp_path / "whole")
    assert not broken.exists()


def test_what_was_begun_with_other_settings_is_begun_anew(tmp_path: Path) -> None:
    corpus, found = opened(tmp_path, made_documents(40))
    tokenizer = vocabulary(tmp_path / "tokenizer")
    building = tmp_path / ".tokens.building"
    (building / "train-00007").mkdir(parents=True)
    write_json(building / "done.json", {"settings": {"format": 0}, "behind": 9, "train": [{}], "held_out": []})
    store = prepare(corpus, found, tokenizer=tokenizer, folder=tmp_path / "tokens")
    assert store.total("train", "documents") == 40 - store.total("held_out", "documents")
    assert sorted(path.name for path in store.folder.iterdir()) == ["held-out", "manifest.json", "train-00000"]


def test_a_store_that_is_there_is_taken_as_it_is_and_another_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, found = opened(tmp_path, made_documents(40))
    tokenizer = vocabulary(tmp_path / "tokenizer")
    first = prepare(corpus, found, tokenizer=tokenizer, folder=tmp_path / "tokens")
    with monkeypatch.context() as patch:
        patch.delattr(SubwordEncoder, "encode")  # nothing is tokenised again
        assert prepare(corpus, found, tokenizer=tokenizer, folder=tmp_path / "tokens").manifest == first.manifest
    with pytest.raises(BadInput, match="words differ"):
        prepare(corpus, found, tokenizer=tokenizer, folder=tmp_path / "tokens", words=True)
    other = vocabulary(tmp_path / "other", CHARACTERS)
    with pytest.raises(BadInput, match="prepared with another tokenizer than"):
        prepare(corpus, found, tokenizer=other, folder=tmp_path / "tokens")
    with pytest.raises(BadInput, match="prepared with another tokenizer than"):
        TokenStore.open(tmp_path / "tokens", tokenizer=other)
    assert TokenStore.open(tmp_path / "tokens", tokenizer=tokenizer).manifest == first.manifest


def test_two_processes_make_the_store_that_one_makes(tmp_path: Path) -> None:
    corpus, found = opened(tmp_path, made_documents(60))
    tokenizer = vocabulary(tmp_path / "tokenizer")
    for processes in (1, 2):
        prepare(
            corpus,
            found,
            tokenizer=tokenizer,
            folder=tmp_path / str(processes),
            part_tokens=2_000,
            processes=processes,
        )
    assert files_of(tmp_path / "1") == files_of(tmp_path / "2")


def test_the_end_of_a_process_from_outside_is_told_and_whole_parts_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, found = opened(tmp_path, made_documents(60))
    hashed = Survey.hashed

    def killing(*arguments: Any) -> Iterator[tuple[list[str], bytes]]:
        for number, document in enumerate(hashed(*arguments)):
            if number == 50:
                for process in multiprocessing.active_children():
                    process.kill()
            yield document

    monkeypatch.setattr(Survey, "hashed", killing)
    with pytest.raises(RuntimeUnavailable, match="ended from outside"):
        prepare(
            corpus,
            found,
            tokenizer=vocabulary(tmp_path / "tokenizer"),
            folder=tmp_path / "tokens",
            part_tokens=500,
            processes=2,
        )
    assert list((tmp_path / ".tokens.building").glob("train-*"))


def test_a_disk_that_is_too_small_is_told_before_anything_is_tokenised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: DiskUsage(10**9, 10**9, 0))
    monkeypatch.delattr(SubwordEncoder, "encode")
    with pytest.raises(BadInput, match=r"takes about 0\.0 GB, the disk of .* has 0\.0 GB left"):
        made_store(tmp_path, made_documents(10))


def test_a_vocabulary_for_other_texts_is_refused_at_once(tmp_path: Path) -> None:
    corpus, found = opened(tmp_path, made_documents(20))
    with pytest.raises(BadInput, match=r"\d+% of the corpus's first tokens are unknown to the vocabulary"):
        prepare(
            corpus,
            found,
            tokenizer=vocabulary(tmp_path / "tokenizer", CHARACTERS[:30]),
            folder=tmp_path / "tokens",
            part_tokens=500,
        )
    assert not list((tmp_path / ".tokens.building").glob("train-*"))
