"""The figures of the table in architectures.md: `python docs/diagrams/sizes.py`, a few minutes on a CPU.

Weights of the models of `wenlei pretrain --config small`, and the multiplications of one of their training steps,
forward and back, on 64 full texts of 128 tokens (a default batch), drawn by Zipf's law. A multiplication and its
addition count once. Words are two characters long.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from model.architectures.elmo import ElmoLanguageModel
from model.architectures.elmo_softmax import CnnSoftmax, draw_words
from model.architectures.gpt import GptLanguageModel
from model.tokenization import gpt_frame
from model.tokenization.words import FIRST_CHARACTER, SPECIAL_WORDS, WordTokenizer
from training.pretrain import wordpiece
from training.pretrain.configs import Arch, Attention, ElmoSize, read_size
from training.pretrain.objectives import Objective
from training.pretrain.starting import new_objective
from training.pretrain.windows import Window

TEXTS, FIRST_IDEOGRAPH = 64, 0x4E00


def main() -> None:
    """Print a line a model."""
    torch.manual_seed(0)
    for arch in Arch:
        with tempfile.TemporaryDirectory() as folder:
            made = objective(arch, Path(folder))
        print(  # noqa: T201
            f"{arch.value:6} {count(made.model):>9,} weights, {kept(made.model):>9,} of them for classifying, "
            f"{multiplications(made) / 1e6:5.1f} M multiplications a token"
        )
        if arch is Arch.ELMO:
            (softmax,) = (part for part in made.model.modules() if isinstance(part, CnnSoftmax))
            table = softmax.vocabulary_size * softmax.cnn.projection.out_features
            print(  # noqa: T201
                f"       {count(softmax):>9,} of them in the CNN softmax: {count(softmax.cnn):,} of the CNN, "
                f"{count(softmax.correction):,} of corrections; a plain one has a table of {table:,}"
            )


def objective(arch: Arch, folder: Path) -> Objective:
    """The task of a new model of the small size, with a made-up vocabulary that is full."""
    size = read_size(arch, "small")
    ideographs = [chr(FIRST_IDEOGRAPH + number) for number in range(size.vocabulary)]
    if isinstance(size, ElmoSize):
        characters = ideographs[: size.characters - FIRST_CHARACTER]
        words = [first + second for first in characters[:200] for second in characters[:200]]
        WordTokenizer(words=words[: size.vocabulary - len(SPECIAL_WORDS)], characters=characters).save(folder)
    else:
        special = wordpiece.SPECIAL_TOKENS
        wordpiece.save(folder, [*special, *ideographs[: size.vocabulary - len(special)]], lower_case=True)
        if arch is Arch.GPT:
            gpt_frame.load_for_pretraining(folder, max_length=size.max_length).save(folder)
    plain = {"whole_words": False, "next_sentence": arch in (Arch.BERT, Arch.NEZHA)}
    return new_objective(arch, size, folder, attention=Attention.FULL, **plain)


def multiplications(made: Objective) -> float:
    """Of a training step, a real token."""
    length = 128 - made.framing
    generator = np.random.default_rng(0)
    batch = made.collate(
        [window(length) for _ in range(TEXTS)],
        lambda _: generator,
        lambda _generator, _window, longest: window(longest),
    )
    made.model.train()
    with FlopCounterMode(display=False) as counter:
        losses = made.losses({name: torch.from_numpy(array) for name, array in batch.inputs.items()})
        torch.stack(list(losses.values())).sum().backward()
    return float(counter.get_total_flops()) / 2 / batch.tokens


def window(length: int) -> Window:
    """A text of two sentences."""
    ids = 10 + draw_words(7_000, length, device=torch.device("cpu")).numpy()
    characters = np.zeros((length, 12), np.int64)
    return Window(ids, np.array([0, length // 2]), np.ones(length, bool), 0, length, characters)


def kept(model: nn.Module) -> int:
    """Weights of the encoder or decoder that a classifier takes over: no heads, no pooler."""
    if isinstance(model, ElmoLanguageModel):
        return count(model.encoder)
    if isinstance(model, GptLanguageModel):
        return count(model.decoder)
    base: Any = model.base_model
    return count(base) - count(base.pooler)


def count(model: nn.Module) -> int:
    """Weights that are trained."""
    return sum(weight.numel() for weight in model.parameters())


if __name__ == "__main__":
    main()
