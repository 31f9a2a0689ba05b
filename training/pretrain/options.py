"""How a pretraining goes: how long, how much a step, by which optimizer."""

import math
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import nn

from model.errors import BadInput
from training.device import NumberFormat

EVALUATION_SHARE = 0.15  # of a training's minutes, at most, goes into judging


class Optimizer(StrEnum):
    """AdamW (Loshchilov 2019) or LAMB (You 2020), which NEZHA was trained with."""

    ADAMW = "adamw"
    LAMB = "lamb"


class Decay(StrEnum):
    """How the learning rate falls after its warm-up: as BERT's, in a line, or as GPT's, by a cosine."""

    LINEAR = "linear"
    COSINE = "cosine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to pretrain, for `steps` or for `minutes`.

    batch_tokens: padded tokens that go through the model at once, over all processes (what is put around very short
    texts comes on top); a step is `accumulate` such batches. max_length: tokens a text, special ones included.
    warmup: the share of the training in which the learning rate rises, for `warmup_steps` at least: layer norms after
    every sum bear no full rate at once. evaluations: how often the held-out texts are judged, beside once before the
    first step, less often where minutes are few; held_out_characters: about how much of them. checkpoint_seconds:
    between two checkpoints, at least.
    """

    steps: int | None = None
    minutes: float | None = None
    batch_tokens: int = 8192
    accumulate: int = 1
    max_length: int = 128
    learning_rate: float = 5e-4
    optimizer: Optimizer = Optimizer.ADAMW
    decay: Decay = Decay.LINEAR
    warmup: float = 0.05
    warmup_steps: int = 100
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    precision: NumberFormat = NumberFormat.AUTO
    evaluations: int = 10
    held_out_characters: int = 60_000
    checkpoint_seconds: float = 60.0

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise BadInput("a pretraining ends after --steps or after --minutes; give one of them")
        for name in ("batch_tokens", "accumulate", "max_length", "evaluations", "held_out_characters"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.steps is not None and self.steps < 0:
            raise BadInput(f"--steps {self.steps}: give 0 at least, which leaves the weights as they start")
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise BadInput(f"--minutes {self.minutes:g}: give a number of minutes, more than 0")
        if not 0 <= self.learning_rate < math.inf:
            raise BadInput(f"--learning-rate {self.learning_rate:g}: give a number, 0 at least; 1e-3 say")
        if self.batch_tokens < self.max_length:
            raise BadInput(
                f"--batch-tokens {self.batch_tokens} holds no text of --max-length {self.max_length}; "
                "make it at least as many"
            )

    def share_done(self, *, step: int, seconds: float) -> float:
        """How much of the training is behind after `step` steps and `seconds`: from 0 to 1."""
        if self.steps == 0:
            return 1.0
        done = step / self.steps if self.steps is not None else seconds / ((self.minutes or 0) * 60)
        return min(1.0, done)

    def affordable_evaluations(self, seconds: float) -> int:
        """How often the held-out texts are judged, when once takes `seconds`."""
        if self.minutes is None:
            return self.evaluations
        affordable = int(EVALUATION_SHARE * self.minutes * 60 / max(seconds, 1e-9))
        return max(1, min(self.evaluations, affordable))

    def rate_at(self, done: float, *, step: int) -> float:
        """The share of the full learning rate when `done` of the training, `step` steps, is behind."""
        return min(self._planned_rate(done), (step + 1) / max(1, self.warmup_steps))

    def _planned_rate(self, done: float) -> float:
        if done < self.warmup:
            return done / self.warmup
        left = (1 - done) / (1 - self.warmup)
        return left if self.decay is Decay.LINEAR else 0.5 * (1 - math.cos(math.pi * left))


def make_optimizer(network: nn.Module, options: Options) -> torch.optim.Optimizer:
    """The optimizer of `network`: biases and layer norms are not decayed, nor scaled by LAMB."""
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    matrices = [parameter for parameter in trained if parameter.ndim > 1]
    others = [parameter for parameter in trained if parameter.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": options.weight_decay},
        {"params": others, "weight_decay": 0.0, "adam": True},
    ]
    groups = [group for group in groups if group["params"]]
    if options.optimizer is Optimizer.LAMB:
        from pytorch_optimizer import Lamb  # takes as long to import as torch

        # Decay is part of the update that the trust ratio scales, as in the paper's algorithm 2.
        return Lamb(groups, lr=options.learning_rate, eps=1e-6, weight_decouple=False)
    for group in groups:
        group.pop("adam", None)
    return torch.optim.AdamW(groups, lr=options.learning_rate, eps=1e-6, fused=True)
