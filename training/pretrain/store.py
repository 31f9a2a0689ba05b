"""A corpus in tokens on the disk: opened in no time, read in flat memory, a stripe of it at a time.

The folder holds `manifest.json` and a folder of columns a part: `held-out` and `train-00000`, `train-00001`, …, in the
order of the corpus; a store of words also the spelling of its vocabulary. `training.pretrain.prepare` writes it.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from model.errors import BadInput, BadRun
from model.files import read_json, sha256_file
from training.pretrain import windows
from training.pretrain.columns import Columns, join
from training.pretrain.windows import Position, Window

FORMAT = 1
SPELLINGS = "spellings.npy"
PartOf = Literal["train", "held_out"]
_MOST_MAPPED = 100  # parts mapped at a time: each takes some of the files that a process may have open
_STRIPES, _BATCHES = 0, 1  # streams of chance


@dataclass(frozen=True, slots=True, eq=False)
class TokenStore:
    """A store as its manifest describes it.

    For training, the parts are cut into as many stripes as there are parts; each epoch joins one stripe of every part
    into a shard, other stripes every time. So a shard is a sample of the whole corpus, and only one is in memory.
    """

    folder: Path
    manifest: dict[str, Any]
    spellings: NDArray[np.int64] | None  # (vocabulary_size, word_length) the words' characters, in stores of words
    _mapped: dict[str, Columns] = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, folder: Path, *, tokenizer: Path | None = None) -> "TokenStore":
        """The store in `folder`; `tokenizer`: the folder of the tokenizer that its tokens have to be of.

        Raises:
            BadRun: there is no store, or a newer wenlei wrote it.
            BadInput: it was made with another tokenizer.
        """
        try:
            manifest = read_json(folder / "manifest.json")
            if manifest["format"] > FORMAT:
                raise BadRun(f"{folder} has format {manifest['format']}, this wenlei reads {FORMAT}; update it")
            path = folder / SPELLINGS
            spellings = np.load(path, allow_pickle=False).astype(np.int64) if path.exists() else None
            store = cls(folder=folder, manifest=manifest, spellings=spellings)
            for split in ("train", "held_out"):
                sum(part["tokens"] for part in store.parts(split))
        except (FileNotFoundError, NotADirectoryError):
            raise BadRun(f"{folder} is no prepared corpus: no manifest.json in it; prepare it again") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadRun(f"{folder}/manifest.json can't be understood ({error!r}); prepare the corpus again") from None
        if tokenizer is not None and sha256_file(tokenizer / "tokenizer.json") != manifest["tokenizer"]["sha256"]:
            raise BadInput(
                f"the corpus in {folder} was prepared with another tokenizer than {tokenizer}; "
                f"remove {folder} to have it prepared anew, or take the tokenizer it was made with"
            )
        return store

    def parts(self, split: PartOf) -> list[dict[str, Any]]:
        """What the manifest says of each part of `split`: name, documents, sentences, tokens, characters, unknown."""
        parts: list[dict[str, Any]] = self.manifest[split]
        return parts

    def total(self, split: PartOf, what: str) -> int:
        """How many `what` (documents, sentences, tokens, characters, unknown tokens) there are in `split`."""
        return sum(int(part[what]) for part in self.parts(split))

    def frequencies(self, n_tokens: int) -> NDArray[np.float64]:
        """(n_tokens,) the share of each token in the train part; each is counted once more, so that none is 0."""
        counts = np.ones(n_tokens, np.int64)
        for number in range(len(self.parts("train"))):
            counts += np.bincount(self._part("train", number).ids, minlength=n_tokens)
        shares: NDArray[np.float64] = counts / counts.sum()
        return shares

    def batches(
        self, split: PartOf, *, max_length: int, batch_tokens: int, seed: int, start: Position = Position()
    ) -> Iterator[tuple[Position, list[Window]]]:
        """Batches of windows of at most `max_length` tokens, and the place after each: what `start` may be next time.

        Endless over epochs for "train", every token of it once an epoch; one pass for "held_out". The windows of a
        batch are of like length, at most `batch_tokens` tokens when padded to the longest. The order follows from
        `seed` and epoch alone, and is the same in every process: several share a batch by slicing it. A place is one
        of a reading with the same sizes and seed.

        Raises:
            BadInput: `max_length` is more than `batch_tokens`, or less than 1.
        """
        if not 1 <= max_length <= batch_tokens:
            raise BadInput(
                f"a window of {max_length} tokens and a batch of {batch_tokens} don't go together; "
                "give a batch at least as many tokens as a window"
            )
        return self._batches(split, max_length, batch_tokens, seed, start)

    def random_window(
        self, split: PartOf, rng: np.random.Generator, *, not_document: int, max_tokens: int
    ) -> Window | None:
        """A window of at most `max_tokens` from anywhere in another document of `split`; None if there is none.

        Documents are equally likely, and so are the sentences of one to begin with.
        """
        ends = list(accumulate(int(part["documents"]) for part in self.parts(split)))
        base = 0 if split == "train" else self.total("train", "documents")
        excluded = not_document - base
        others = ends[-1] - (0 <= excluded < ends[-1])
        if others < 1:
            return None
        number = int(rng.integers(others))
        number += 0 <= excluded <= number
        part = bisect_right(ends, number)
        columns = self._part(split, part)
        document = number - (ends[part - 1] if part else 0)
        sentence = int(rng.integers(int(columns.documents[document + 1]) - int(columns.documents[document])))
        return windows.window_at(
            columns,
            document,
            sentence,
            number=number + base,
            max_tokens=max_tokens,
            spellings=self.spellings,
        )

    def _batches(
        self, split: PartOf, max_length: int, batch_tokens: int, seed: int, at: Position
    ) -> Iterator[tuple[Position, list[Window]]]:
        n_shards = len(self.parts(split))
        while split == "train" or at.epoch == 0:
            shard, numbers = self._shard(split, at, seed)
            plan = windows.plan(shard, numbers, max_length, self.spellings)
            shuffle = np.random.default_rng([seed, at.epoch, at.shard, _BATCHES]) if split == "train" else None
            batches = windows.batched(plan, batch_tokens, shuffle)
            behind = Position(at.epoch, at.shard + 1) if at.shard + 1 < n_shards else Position(at.epoch + 1)
            for number in range(at.batch + 1, len(batches) + 1):
                after = Position(at.epoch, at.shard, number) if number < len(batches) else behind
                yield after, plan.windows(batches[number - 1])
            at = behind

    def _shard(self, split: PartOf, at: Position, seed: int) -> tuple[Columns, NDArray[np.int64]]:
        """The documents of a shard, a stripe of every part, and their numbers in the store."""
        n_stripes = len(self.parts(split))
        base = 0 if split == "train" else self.total("train", "documents")
        stripes, numbers = [], []
        for number in range(n_stripes):
            columns = self._part(split, number)
            if split == "train":
                order = np.random.default_rng([seed, at.epoch, number, _STRIPES]).permutation(n_stripes)
                stripe = int(order[at.shard])
            else:
                stripe = at.shard
            ends = columns.sentences[columns.documents]  # of documents, in tokens
            cuts = np.searchsorted(ends, [len(columns.ids) * k // n_stripes for k in (stripe, stripe + 1)])
            stripes.append(columns.slice(int(cuts[0]), int(cuts[1])))
            numbers.append(base + np.arange(cuts[0], cuts[1]))
            base += columns.n_documents
        return join(stripes), np.concatenate(numbers)

    def _part(self, split: PartOf, number: int) -> Columns:
        name = self.parts(split)[number]["name"]
        if name not in self._mapped:
            if len(self._mapped) >= _MOST_MAPPED:
                self._mapped.pop(next(iter(self._mapped)))
            try:
                self._mapped[name] = Columns.map(self.folder / name)
            except (OSError, ValueError, TypeError) as error:
                raise BadRun(f"{self.folder / name} can't be read ({error}); prepare the corpus again") from None
        return self._mapped[name]
