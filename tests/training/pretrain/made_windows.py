"""Windows, vocabularies and tiny models that are made up, for tests of objectives and of their loop."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertForPreTraining

from training.pretrain.bert_objective import BertObjective
from training.pretrain.store import PartOf
from training.pretrain.tokens import TokenTable
from training.pretrain.windows import Position, Window

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
N_TOKENS, N_IN_TEXTS = 65, 8


def vocabulary(folder: Path, *, special: list[str] = SPECIAL) -> Path:
    """A `tokenizer.json` of 60 characters and the special tokens."""
    tokens = [*special, *map(chr, range(0x4E00, 0x4E00 + N_TOKENS - len(SPECIAL)))]
    tokenizer = Tokenizer(models.WordLevel({token: number for number, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.add_special_tokens(special)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def windows(n: int, *, longest: int = 20, seed: int = 0) -> list[Window]:
    """Texts of one to four sentences, each of a document of its own; the tokens of a text come in a fixed order."""
    random = np.random.default_rng(seed)
    return [window(random, document, int(random.integers(4, longest + 1))) for document in range(n)]


def window(random: np.random.Generator, document: int, length: int) -> Window:
    """One text of `length` tokens, a run through the few that there are in texts, so that there is much to learn."""
    ids = (random.integers(N_IN_TEXTS) + np.arange(length)) % N_IN_TEXTS + len(SPECIAL)
    cuts = random.choice(np.arange(1, length), int(random.integers(min(4, length))), replace=False)
    return Window(
        ids=ids.astype(np.int64),
        sentence_starts=np.sort(np.r_[0, cuts]).astype(np.int64),
        word_starts=random.random(length) < 0.6,
        document=document,
        n_characters=length,
    )


@dataclass(frozen=True)
class MadeWindows:
    """A source of windows like a token store: `per_batch` of them a batch, endless for train."""

    per_batch: int = 8
    n_held_out: int = 12
    longest: int = 20

    def batches(
        self, split: PartOf, *, max_length: int, batch_tokens: int, seed: int, start: Position = Position()
    ) -> Iterator[tuple[Position, list[Window]]]:
        numbers = count(start.batch) if split == "train" else range(-(-self.n_held_out // self.per_batch))
        for number in numbers:
            first = number * self.per_batch + (0 if split == "train" else 1_000_000)
            texts = [self._text(first + row, seed) for row in range(self.per_batch)]
            yield Position(batch=number + 1), texts

    def random_window(
        self, split: PartOf, rng: np.random.Generator, *, not_document: int, max_tokens: int
    ) -> Window | None:
        return window(rng, not_document + 1, max_tokens)

    def _text(self, document: int, seed: int) -> Window:
        random = np.random.default_rng((seed, document))
        return window(random, document, int(random.integers(4, self.longest + 1)))


def tiny_bert(folder: Path, **changes: float) -> BertObjective:
    """BERT, 2 layers of 32, with both tasks, for the vocabulary that it writes into `folder`."""
    config = BertConfig(
        vocab_size=N_TOKENS,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        **changes,
    )
    torch.manual_seed(1)
    return BertObjective(model=BertForPreTraining(config), tokens=TokenTable.read(vocabulary(folder)))
