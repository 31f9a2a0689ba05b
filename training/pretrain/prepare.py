"""Tokenise a corpus once: text → token store, part by part, and on from the last whole part where it was broken off."""

import multiprocessing
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from model.console import progress, say
from model.errors import BadInput, RuntimeUnavailable
from model.files import only_process, publish, read_json, sha256_file, staging_folder, write_json
from training.pretrain.columns import Columns, join
from training.pretrain.corpus import Corpus
from training.pretrain.encoders import Encoder, encoder_of, id_type
from training.pretrain.store import FORMAT, SPELLINGS, TokenStore
from training.pretrain.survey import Survey

PART_TOKENS = 8_000_000  # of a part: 16 MB of ids, and what a run that was broken off has to do again
MOST_UNKNOWN = 0.2  # share of the first tokens
_BLOCK_CHARACTERS = 500_000  # that a process gets at a time
_WORTH_PROCESSES = 4_000_000  # characters; a smaller corpus is done before other processes have started
_DONE = "done.json"  # while building: the parts that are whole, and how many documents are behind them
_HELD_OUT = "held-out"


@dataclass(frozen=True, slots=True)
class _Block:
    """Documents to tokenise, and how many of the corpus are behind the last of them."""

    documents: list[list[str]]
    behind: int


_Encode = Callable[[Iterator[_Block]], Iterator[tuple[Columns, int]]]


def prepare(
    corpus: Corpus,
    survey: Survey,
    *,
    tokenizer: Path,
    folder: Path,
    words: bool = False,
    processes: int | None = None,
    part_tokens: int = PART_TOKENS,
) -> TokenStore:
    """The token store of `corpus` in `folder`, by the tokenizer in the folder `tokenizer`; made unless it is there.

    words: tell where jieba's words begin, for masking whole words. processes: that tokenise; as many as there are
    processors unless given.

    Raises:
        BadInput: the store there is of another corpus, tokenizer or seed; the disk has no room for it; or another
            process is making it; or most of the corpus is unknown to the tokenizer.
        RuntimeUnavailable: the system ended one of the processes.
    """
    settings = {
        "format": FORMAT,
        "corpus": corpus.to_json(),
        "survey": survey.to_json(),
        "tokenizer": {"sha256": sha256_file(tokenizer / "tokenizer.json")},
        "words": words,
        "part_tokens": part_tokens,
    }
    if not (folder / "manifest.json").exists():
        building = folder.with_name(f".{folder.name}.building")
        with only_process(building):
            encoder = encoder_of(tokenizer, words_marked=words)
            done = _begin(building, settings)
            _check_disk(building, survey, encoder, done["train"], words=words)
            if processes is None:
                processes = len(os.sched_getaffinity(0)) if survey.characters >= _WORTH_PROCESSES else 1
            encode = _here(encoder) if processes < 2 else _in_processes(tokenizer, words, processes)
            _build(corpus, survey, building, done, encoder, encode, part_tokens)
            if encoder.spellings is not None:
                np.save(building / SPELLINGS, encoder.spellings, allow_pickle=False)
            parts = {name: done[name] for name in ("train", "held_out")}
            write_json(building / "manifest.json", {**settings, "vocabulary_size": encoder.vocabulary_size, **parts})
            (building / _DONE).unlink()
            (building / ".lock").unlink()
            publish(building, folder)
    store = TokenStore.open(folder, tokenizer=tokenizer)
    if other := [name for name, value in settings.items() if store.manifest.get(name) != value]:
        raise BadInput(
            f"{folder} was prepared from another corpus or otherwise ({', '.join(other)} differ); "
            "give another --out, or remove that folder to have it prepared anew"
        )
    return store


def _begin(building: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """What is there already of a store of these settings; anything else is cleared away."""
    try:
        done: dict[str, Any] = read_json(building / _DONE)
        if done["settings"] == settings:
            if done["train"]:
                say(f"接着切分 | going on behind {done['behind']:,} documents that are tokenised")
            return done
    except (OSError, ValueError, KeyError, TypeError):
        pass  # nothing was whole yet
    for path in building.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    done = {"settings": settings, "behind": 0, "train": [], "held_out": []}
    write_json(building / _DONE, done)
    return done


def _check_disk(building: Path, survey: Survey, encoder: Encoder, train: list[dict[str, Any]], *, words: bool) -> None:
    """Refuse a disk on which the store would not fit; a token is a character at most, or nearly so."""
    a_token = np.dtype(id_type(encoder.vocabulary_size)).itemsize + words + (2 if encoder.spellings is not None else 0)
    left = max(survey.characters - sum(int(part["characters"]) for part in train), 0)
    need = left * (a_token + 0.5) / 1e9  # half a byte for the bounds of sentences
    free = shutil.disk_usage(building).free / 1e9
    if need > free:
        raise BadInput(
            f"the corpus in tokens takes about {need:.1f} GB, the disk of {building.parent} has {free:.1f} GB left; "
            "free some space or give another --out"
        )


def _check_known(columns: Columns, encoder: Encoder) -> None:
    """Refuse sub-words that do not know the characters of the corpus; words that are not known are spelled."""
    unknown = float((columns.ids == encoder.unknown_id).mean()) if len(columns.ids) else 0.0
    if encoder.spellings is None and unknown > MOST_UNKNOWN:
        raise BadInput(
            f"{unknown:.0%} of the corpus's first tokens are unknown to the vocabulary; take a larger one, or one for "
            "texts like these, or have one trained on the corpus"
        )


def _build(
    corpus: Corpus,
    survey: Survey,
    building: Path,
    done: dict[str, Any],
    encoder: Encoder,
    encode: _Encode,
    part_tokens: int,
) -> None:
    held_out: dict[bytes, list[str]] = {}
    pending: list[Columns] = []
    with progress("切分 | tokenising (MB)", corpus.bytes / 1e6) as advance:
        read = survey.hashed(corpus, lambda n: advance(n / 1e6))
        blocks = _blocks(read, survey, done["behind"], held_out, min(_BLOCK_CHARACTERS, part_tokens))
        for columns, behind in encode(blocks):
            if not pending and not done["train"]:
                _check_known(columns, encoder)
            pending.append(columns)
            if sum(len(columns.ids) for columns in pending) >= part_tokens:
                done["train"].append(_save(pending, building / f"train-{len(done['train']):05}", encoder))
                done["behind"], pending = behind, []
                write_json(building / _DONE, done)
    if sum(len(columns.ids) for columns in pending):
        done["train"].append(_save(pending, building / f"train-{len(done['train']):05}", encoder))
    if not done["train"]:
        raise BadInput("no tokens are left of the corpus to train on; is it text that the tokenizer reads?")
    done["held_out"] = [_save([encoder.encode(list(held_out.values()))], building / _HELD_OUT, encoder)]


def _blocks(
    read: Iterator[tuple[list[str], bytes]],
    survey: Survey,
    skip: int,
    held_out: dict[bytes, list[str]],
    block_characters: int,
) -> Iterator[_Block]:
    """The documents to train on, but the first `skip` of the corpus; what is held out is put into `held_out`, once."""
    documents: list[list[str]] = []
    size = number = 0
    for number, (document, hashed) in enumerate(read, 1):
        if hashed in survey.held_out:
            held_out.setdefault(hashed, document)
        elif number > skip:
            documents.append(document)
            size += sum(map(len, document))
            if size >= block_characters:
                yield _Block(documents, number)
                documents, size = [], 0
    if documents:
        yield _Block(documents, number)


def _save(blocks: list[Columns], destination: Path, encoder: Encoder) -> dict[str, Any]:
    """Write a part, whole or not at all; what the manifest says of it."""
    part = join(blocks)
    if destination.exists():  # of a run that was broken off before it could note it
        shutil.rmtree(destination)
    with staging_folder(destination) as staging:
        part.save(staging)
        publish(staging, destination)
    return {
        "name": destination.name,
        "documents": part.n_documents,
        "sentences": len(part.characters),
        "tokens": len(part.ids),
        "characters": int(part.characters.sum(dtype=np.int64)),
        "unknown": int((part.ids == encoder.unknown_id).sum()) if encoder.unknown_id is not None else 0,
    }


def _here(encoder: Encoder) -> _Encode:
    return lambda blocks: ((encoder.encode(block.documents), block.behind) for block in blocks)


def _in_processes(tokenizer: Path, words: bool, processes: int) -> _Encode:
    def encode(blocks: Iterator[_Block]) -> Iterator[tuple[Columns, int]]:
        context = multiprocessing.get_context("spawn")  # a fork would copy locks that threads of torch hold
        with ProcessPoolExecutor(processes, context, initializer=_start, initargs=(tokenizer, words)) as pool:
            waiting: deque[tuple[Future[Columns], int]] = deque()
            try:
                for block in blocks:
                    waiting.append((pool.submit(_encode, block.documents), block.behind))
                    if len(waiting) > 2 * processes:  # never the whole corpus in memory
                        future, behind = waiting.popleft()
                        yield future.result(), behind
                for future, behind in waiting:
                    yield future.result(), behind
            except BrokenProcessPool:
                raise RuntimeUnavailable(
                    "a process that tokenises was ended from outside, most likely for want of memory; "
                    "free some and start again: the parts that are whole are kept"
                ) from None

    return encode


_encoder: Encoder


def _start(tokenizer: Path, words: bool) -> None:
    global _encoder
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # every processor has its process already
    _encoder = encoder_of(tokenizer, words_marked=words)


def _encode(documents: list[list[str]]) -> Columns:
    return _encoder.encode(documents)
