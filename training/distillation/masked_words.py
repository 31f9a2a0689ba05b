"""Words that a masked language model puts in place of others: a word is masked whole, and written token by token."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.architectures.foreign_weights import load_for_pretraining, plain, read_config
from model.architectures.weight_files import read_weights
from model.errors import BadInput
from model.tokenization import subwords
from training.device import NumberFormat, autocast, pick_device, pick_precision
from training.distillation.replacing import Draft
from training.distillation.vocabulary import script
from training.pretrain.bert_objective import scores_of
from training.pretrain.tokens import TokenTable

CANDIDATES = 15  # the likeliest tokens that one is drawn from, as in the paper
LONGEST = 128  # tokens of a text that are read; words behind them stay
_CONTINUING = "##"
_HEADS = ("cls.predictions.", "generator_lm_head.")


@dataclass(frozen=True, slots=True)
class _Row:
    """A text's ids, and of each chosen word the places of its tokens; none where it is to stay."""

    ids: list[int]
    places: list[list[int]]


class MaskedWords:
    """A replacer by the masked language model in `folder`.

    Raises:
        BadInput: it is none, or its vocabulary has no [MASK].
    """

    def __init__(self, folder: Path) -> None:
        self.table = TokenTable.read(folder)
        if missing := [name for name in ("mask", "cls", "sep", "pad") if name not in self.table.special]:
            raise BadInput(f"--masked-lm {folder}: its vocabulary has no token for {', '.join(missing)}")
        names = [plain(name) for name, _ in read_weights(folder)]
        if not any(name.startswith(_HEADS) for name in names):
            raise BadInput(
                f"--masked-lm {folder}: its weights have no head that guesses masked tokens, as in classifiers; "
                "take the model that they were made of, or a run of wenlei pretrain --arch bert"
            )
        engine = subwords.read_engine(folder)
        self.encode = partial(engine.encode, add_special_tokens=False)
        self.token_of = {number: token for token, number in engine.get_vocab().items()}
        self.longest = min(LONGEST, read_config(folder).max_position_embeddings)
        self.device = pick_device()
        self.precision = pick_precision(NumberFormat.AUTO, self.device)
        self.model: Any = load_for_pretraining(folder).eval()
        self.model.to(self.device)
        self.scores = scores_of(self.model)
        self.writings = self._writings()

    def __call__(self, drafts: Sequence[Draft], random: np.random.Generator) -> list[list[str]]:
        """All chosen words are masked at once; their first tokens are drawn first, then those that follow."""
        rows = [self._row(draft) for draft in drafts]
        before = np.full((len(rows), max(len(row.ids) for row in rows)), self.table.special["pad"], np.int64)
        for own, row in zip(before, rows, strict=True):
            own[: len(row.ids)] = row.ids
        mask = (before != self.table.special["pad"]).astype(np.int64)
        ids = before.copy()
        for number, row in enumerate(rows):
            ids[number, [place for word in row.places for place in word]] = self.table.special["mask"]
        longest = max((len(word) for row in rows for word in row.places), default=0)
        for step in range(longest):
            at = [(n, word[step]) for n, row in enumerate(rows) for word in row.places if step < len(word)]
            where = tuple(np.array(at).T)
            ids[where] = self._drawn(ids, mask, where, before[where], random)
        return [
            [
                self._word(own[places]) if places else draft.words[chosen]
                for chosen, places in zip(draft.chosen, row.places, strict=True)
            ]
            for own, row, draft in zip(ids, rows, drafts, strict=True)
        ]

    def _row(self, draft: Draft) -> _Row:
        special = self.table.special
        ids, places = [special["cls"]], []
        for number, word in enumerate(draft.words):
            own = self.encode(word).ids
            begin = len(ids)
            ids += own
            if number in draft.chosen:
                able = own and len(ids) < self.longest and all(self.writings[token] for token in own)
                places.append(list(range(begin, len(ids))) if able else [])
        return _Row([*ids[: self.longest - 1], special["sep"]], places)

    def _drawn(
        self,
        ids: NDArray[np.int64],
        mask: NDArray[np.int64],
        where: tuple[NDArray[np.int64], ...],
        before: NDArray[np.int64],
        random: np.random.Generator,
    ) -> NDArray[np.int64]:
        """A token for each of the places `where`, of the writing that the one `before` is of: (n_places,)."""
        with torch.inference_mode(), autocast(self.device, self.precision):
            inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
            inputs = {name: values.to(self.device) for name, values in inputs.items()}
            states = self.model.base_model(**inputs).last_hidden_state[where]
            scores: Tensor = self.scores(states).float().cpu()
        wanted = torch.from_numpy(self.writings[before])
        other = torch.from_numpy(self.writings)[None, :] != wanted[:, None]
        best = scores.masked_fill(other, -torch.inf).topk(CANDIDATES)
        shares = best.values.softmax(-1).cumsum(-1).numpy()
        drawn = (shares < random.random((len(before), 1)) * shares[:, -1:]).sum(-1)
        chosen: NDArray[np.int64] = best.indices.numpy()[np.arange(len(before)), drawn]
        return chosen

    def _writings(self) -> NDArray[np.int64]:
        """(size,) tokens that may stand for each other have the same number: of one script, of one letter or several,
        and beginning a word or not. 0: tokens without letters, and special ones.
        """
        numbers: dict[tuple[str, bool, bool], int] = {}
        writings = np.zeros(self.table.size, np.int64)
        for number in self.table.ordinary.tolist():
            token = self.token_of[number]
            letters = token.removeprefix(_CONTINUING)
            if letters.isalpha():
                key = (script(letters[0]) or "", len(letters) == 1, token.startswith(_CONTINUING))
                writings[number] = numbers.setdefault(key, len(numbers) + 1)
        return writings

    def _word(self, ids: NDArray[np.int64]) -> str:
        return "".join(self.token_of[number].removeprefix(_CONTINUING) for number in ids.tolist())
