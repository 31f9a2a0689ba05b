"""WordPiece in BERT's frame at many times the speed: what stands alone is looked up, only the rest is tokenised.

Chinese characters and punctuation are tokens by themselves whatever is beside them. So a text is these, read from a
table, and runs of other characters between them (Latin words, numbers, spaces), which repeat and are remembered. The
ids are those of the engine itself.
"""

import json
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as Engine

_MOST_RUNS = 500_000  # remembered at a time
_CODE_POINTS = 0x110000
_UNSEEN, _IN_RUN, _BREAK = -3, -2, -1  # in the table, where there is no id


class Tokens(NamedTuple):
    """ids: (n_tokens,) of all texts. lengths: (n_texts,) tokens of each.

    positions: (n_tokens,) where each token begins in the texts joined by line breaks.
    """

    ids: NDArray[np.int64]
    lengths: NDArray[np.int64]
    positions: NDArray[np.int64]


class IsolatedTokens:
    """Tokenises with `engine`, which has to be one that `serves` approves of."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._table = np.full(_CODE_POINTS, _UNSEEN, np.int64)
        self._table[ord("\n")] = _BREAK
        self._unknown: int = engine.get_vocab()[engine.model.unk_token]
        self._runs: dict[str, tuple[list[int], list[int]]] = {}  # ids, and offsets where they begin

    @staticmethod
    def serves(engine: Engine) -> bool:
        """Whether `engine` is WordPiece in BERT's frame, with no added tokens but special ones."""
        settings = json.loads(engine.to_str())
        kinds = [(settings[part] or {}).get("type") for part in ("normalizer", "pre_tokenizer", "model")]
        return bool(
            kinds == ["BertNormalizer", "BertPreTokenizer", "WordPiece"]
            and settings["normalizer"]["handle_chinese_chars"]
            and engine.token_to_id(settings["model"]["unk_token"]) is not None
            and all(token["special"] for token in settings["added_tokens"])
        )

    def encode(self, texts: list[str]) -> Tokens:
        """The tokens of `texts`, which hold no line breaks."""
        joined = "\n".join(texts)
        points = np.frombuffer(joined.encode("utf-32-le", "replace"), np.uint32)
        for point in np.unique(points[self._table[points] == _UNSEEN]).tolist():
            self._table[point] = self._alone(chr(point))
        found = self._table[points]
        edges = np.flatnonzero(np.diff(found == _IN_RUN, prepend=False, append=False))
        starts, ends = edges[::2], edges[1::2]
        runs = self._tokenised([joined[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])
        sizes = np.fromiter((len(ids) for ids, _ in runs), np.int64, len(runs))
        counts = (found >= 0).astype(np.int64)  # tokens that begin with each character, those of a run with its first
        counts[starts] = sizes
        before = np.concatenate([[0], np.cumsum(counts)])
        ids, positions = np.empty(before[-1], np.int64), np.empty(before[-1], np.int64)
        alone = np.flatnonzero(found >= 0)
        ids[before[alone]], positions[before[alone]] = found[alone], alone
        inside = np.repeat(before[starts], sizes) + _ranges(sizes)
        ids[inside] = np.fromiter(chain.from_iterable(numbers for numbers, _ in runs), np.int64)
        positions[inside] = np.fromiter(chain.from_iterable(offsets for _, offsets in runs), np.int64)
        positions[inside] += np.repeat(starts, sizes)
        breaks = np.concatenate([before[:-1][found == _BREAK], before[-1:]])
        return Tokens(ids, np.diff(breaks, prepend=0)[: len(texts)], positions)

    def _alone(self, character: str) -> int:
        """The id of a character that stands alone between letters; `_IN_RUN` where it does not."""
        normal = self._engine.normalizer.normalize_str(f"a{character}a")
        parts = [part for part, _ in self._engine.pre_tokenizer.pre_tokenize_str(normal)]
        if len(parts) != 3 or len(parts[1]) != 1:
            return _IN_RUN
        known = self._engine.token_to_id(parts[1])
        return self._unknown if known is None else int(known)

    def _tokenised(self, runs: list[str]) -> list[tuple[list[int], list[int]]]:
        if len(self._runs) > _MOST_RUNS:
            self._runs.clear()
        if new := [run for run in dict.fromkeys(runs) if run not in self._runs]:
            for run, encoding in zip(new, self._engine.encode_batch(new, add_special_tokens=False), strict=True):
                self._runs[run] = encoding.ids, [start for start, _ in encoding.offsets]
        return [self._runs[run] for run in runs]


def _ranges(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, … for each of `sizes`, one after the other."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
