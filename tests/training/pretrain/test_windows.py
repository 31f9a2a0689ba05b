import json
import tracemalloc
from collections import Counter, defaultdict
from itertools import islice, takewhile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_corpora import CHARACTERS, ENDS, made_documents, made_store

from model.errors import BadInput
from training.pretrain.columns import Columns
from training.pretrain.store import PartOf, TokenStore
from training.pretrain.windows import Position, Window, plan

Batches = list[tuple[Position, list[Window]]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    """300 documents in eight parts."""
    found = made_store(tmp_path_factory.mktemp("store"), made_documents(300), part_tokens=4_000)
    assert len(found.parts("train")) == 8
    return found


@pytest.fixture(scope="module")
def texts(store: TokenStore) -> dict[int, str]:
    """The text of every document of the store, by its number."""
    found, base = {}, 0
    for part in [*store.parts("train"), *store.parts("held_out")]:
        columns = Columns.map(store.folder / part["name"])
        for number in range(columns.n_documents):
            found[base + number] = decoded(columns.slice(number, number + 1).ids)
        base += columns.n_documents
    return found


def decoded(ids: np.ndarray) -> str:
    return "".join((CHARACTERS + ENDS)[number - 4] for number in ids)


def epoch_of(store: TokenStore, *, epoch: int = 0, split: PartOf = "train", seed: int = 3, **sizes: int) -> Batches:
    sizes = {"max_length": 40, "batch_tokens": 400, **sizes}
    found = store.batches(split, seed=seed, start=Position(epoch), **sizes)
    batches: Batches = []
    for batch in found:
        batches.append(batch)
        if batch[0].epoch > epoch:
            break
    return batches


def content(batches: Batches) -> list[tuple[Position, list[tuple[int, str, list[int]]]]]:
    return [
        (position, [(window.document, decoded(window.ids), window.sentence_starts.tolist()) for window in batch])
        for position, batch in batches
    ]


@pytest.mark.parametrize("max_length", [1, 7, 40, 1000])
def test_every_token_of_the_train_part_comes_once_an_epoch_and_no_window_crosses_a_document(
    store: TokenStore, texts: dict[int, str], max_length: int
) -> None:
    windows = [window for _, batch in epoch_of(store, max_length=max_length, batch_tokens=1000) for window in batch]
    assert all(1 <= window.length <= max_length for window in windows)
    of_document = defaultdict(list)
    for window in windows:
        assert decoded(window.ids) in texts[window.document]
        of_document[window.document].append(decoded(window.ids))
    n_train = store.total("train", "documents")
    assert sorted(of_document) == list(range(n_train))
    assert all(Counter("".join(parts)) == Counter(texts[number]) for number, parts in of_document.items())
    assert sum(window.length for window in windows) == store.total("train", "tokens")
    assert sum(window.n_characters for window in windows) == store.total("train", "characters")


def test_windows_are_whole_sentences_as_long_as_they_fit(store: TokenStore, texts: dict[int, str]) -> None:
    for _, batch in epoch_of(store, max_length=40):
        for window in batch:
            text = decoded(window.ids)
            bounds = [number + 1 for number, character in enumerate(text) if character in ENDS]
            assert window.sentence_starts.tolist() == [0, *bounds[:-1]]
            assert text[-1] in ENDS
            assert window.n_characters == window.length
            following = texts[window.document].partition(text)[2]
            if following:
                assert len(text) + 1 + min(following.index(end) for end in ENDS if end in following) > 40


@settings(max_examples=50, deadline=None)
@given(
    lengths=st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=6), min_size=1, max_size=8),
    max_length=st.integers(1, 40),
)
def test_a_document_is_cut_in_order_and_a_sentence_only_where_it_does_not_fit(
    lengths: list[list[int]], max_length: int
) -> None:
    flat = [length for document in lengths for length in document]
    ids = np.arange(sum(flat), dtype=np.uint32)
    shard = Columns(
        ids=ids,
        sentences=np.cumsum([0, *flat]).astype(np.uint32),
        documents=np.cumsum([0, *map(len, lengths)]).astype(np.uint32),
        characters=np.array([3 * length for length in flat], np.uint32),
    )
    numbers = np.arange(len(lengths)) + 5
    found = plan(shard, numbers, max_length)
    windows = found.windows(np.arange(len(found.starts)))
    assert np.concatenate([window.ids for window in windows]).tolist() == ids.tolist()
    sentence_bounds = set(shard.sentences.tolist())
    document_bounds = shard.sentences[shard.documents].tolist()
    for window, following in zip(windows, [*windows[1:], None], strict=True):
        assert 1 <= window.length <= max_length
        start, end = int(window.ids[0]), int(window.ids[-1]) + 1
        assert document_bounds[window.document - 5] <= start < end <= document_bounds[window.document - 4]
        inside = [bound for bound in sorted(sentence_bounds) if start < bound < end]
        assert window.sentence_starts.tolist() == [0, *(bound - start for bound in inside)]
        assert window.n_characters == 3 * window.length
        assert window.place == 3 * (start - document_bounds[window.document - 5])
        if end not in sentence_bounds:  # cut: the sentence alone, as much of it as fits
            assert window.length == max_length
            assert not inside
        elif following and following.document == window.document:
            next_bound = min(bound for bound in sentence_bounds if bound > end)
            assert next_bound - start > max_length


def test_characters_of_a_cut_sentence_add_up() -> None:
    shard = Columns(
        ids=np.arange(10, dtype=np.uint16),
        sentences=np.array([0, 10], np.uint32),
        documents=np.array([0, 1], np.uint32),
        characters=np.array([17], np.uint32),
    )
    found = plan(shard, np.zeros(1, np.int64), 3)
    assert found.characters.sum() == 17
    assert found.characters.min() >= 1


def test_a_batch_holds_windows_of_like_length_within_its_tokens(store: TokenStore) -> None:
    batches = [batch for _, batch in epoch_of(store, max_length=60, batch_tokens=600)]
    padded = sum(len(batch) * max(window.length for window in batch) for batch in batches)
    assert all(len(batch) * max(window.length for window in batch) <= 600 for batch in batches)
    assert padded < 1.1 * store.total("train", "tokens")
    assert len(batches) < 1.4 * store.total("train", "tokens") / 600
    widths = [max(window.length for window in batch) for batch in batches]
    assert widths != sorted(widths, reverse=True)  # batches come in random order


def test_the_order_follows_from_seed_and_epoch(store: TokenStore) -> None:
    first = content(epoch_of(store))
    assert first == content(epoch_of(store))
    assert first != content(epoch_of(store, seed=4))
    windows = [window for _, batch in first for window in batch]
    second = [window for _, batch in content(epoch_of(store, epoch=1)) for window in batch]
    assert windows != second
    assert sorted(windows) == sorted(second)


def test_batches_go_on_exactly_from_any_position(store: TokenStore) -> None:
    def read(start: Position, n: int) -> Batches:
        return list(islice(store.batches("train", max_length=30, batch_tokens=500, seed=8, start=start), n))

    whole = read(Position(), 160)
    assert whole[-1][0].epoch == 2
    for after in range(0, 157, 6):
        restored = Position.from_json(json.loads(json.dumps(whole[after][0].to_json())))
        assert content(read(restored, 3)) == content(whole[after + 1 : after + 4])


def test_a_shard_is_a_sample_of_the_whole_corpus_and_another_one_every_epoch(store: TokenStore) -> None:
    ends = np.cumsum([part["documents"] for part in store.parts("train")])

    def documents_of(epoch: int) -> set[int]:
        start = Position(epoch)
        batches = store.batches("train", max_length=40, batch_tokens=400, seed=3, start=start)
        first = takewhile(lambda batch: batch[0].shard == 0, batches)
        return {window.document for _, batch in first for window in batch}

    first = documents_of(0)
    assert set(np.searchsorted(ends, sorted(first), side="right")) == set(range(len(ends)))
    assert first != documents_of(1)


def test_held_out_is_one_pass_in_a_fixed_order(store: TokenStore, texts: dict[int, str]) -> None:
    batches = epoch_of(store, split="held_out")
    assert content(batches) == content(epoch_of(store, split="held_out", seed=99))
    windows = [window for _, batch in batches for window in batch]
    assert sum(window.length for window in windows) == store.total("held_out", "tokens")
    n_train = store.total("train", "documents")
    assert {window.document for window in windows} == set(range(n_train, len(texts)))
    assert all(decoded(window.ids) in texts[window.document] for window in windows)


def test_windows_longer_than_a_batch_are_refused(store: TokenStore) -> None:
    with pytest.raises(BadInput, match="a window of 512 tokens and a batch of 256"):
        store.batches("train", max_length=512, batch_tokens=256, seed=0)


def test_a_random_window_is_of_another_document_and_begins_a_sentence(store: TokenStore, texts: dict[int, str]) -> None:
    random = np.random.default_rng(5)
    n_train = store.total("train", "documents")
    seen = set()
    for number in range(1500):
        excluded = number % n_train
        window = store.random_window("train", random, not_document=excluded, max_tokens=20)
        assert window is not None
        assert window.document != excluded
        assert window.length <= 20
        text = decoded(window.ids)
        whole = texts[window.document]
        at = [start for start in range(len(whole)) if whole.startswith(text, start)]
        assert any(start == 0 or whole[start - 1] in ENDS for start in at)
        seen.add(window.document)
    assert len(seen) > 0.98 * n_train
    held_out = {
        store.random_window("held_out", random, not_document=n_train, max_tokens=20).document  # type: ignore[union-attr]
        for _ in range(300)
    }
    assert held_out == set(range(n_train + 1, len(texts)))


def test_a_random_window_has_sentences_as_long_as_they_fit(store: TokenStore) -> None:
    random = np.random.default_rng(6)
    lengths = Counter[int]()
    for _ in range(300):
        window = store.random_window("train", random, not_document=0, max_tokens=45)
        assert window is not None
        text = decoded(window.ids)
        assert text[-1] in ENDS  # no sentence here is longer than 45
        assert window.sentence_starts.tolist() == [0, *(i + 1 for i, c in enumerate(text[:-1]) if c in ENDS)]
        lengths[len(window.sentence_starts)] += 1
    assert max(lengths) > 2


def test_there_is_no_other_window_where_there_is_one_document(tmp_path: Path) -> None:
    store = made_store(tmp_path, made_documents(2))
    assert store.total("train", "documents") == store.total("held_out", "documents") == 1
    random = np.random.default_rng(0)
    assert store.random_window("train", random, not_document=0, max_tokens=9) is None
    assert store.random_window("held_out", random, not_document=1, max_tokens=9) is None
    assert store.random_window("train", random, not_document=1, max_tokens=9) is not None


def test_memory_is_flat_however_many_parts_there_are(tmp_path: Path) -> None:
    def peak(n: int) -> int:
        folder = tmp_path / str(n)
        folder.mkdir()
        store = made_store(folder, made_documents(n), part_tokens=1_500)
        batches = store.batches("train", max_length=40, batch_tokens=400, seed=0)
        next(batches)
        tracemalloc.start()
        for position, _ in batches:
            if position.epoch:
                break
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(160) < 1.3 * peak(40)
