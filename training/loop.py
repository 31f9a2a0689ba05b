"""The loop that fits a network to labels: length-sorted batches, mixed precision, clipping, early stopping, resume.

A step's randomness is the state of torch's generator, which is in every checkpoint; an epoch's batches follow from
the seed. A training that was broken off and goes on from its checkpoint ends with the same weights as one that wasn't.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from model.console import progress, say
from model.errors import BadInput, BadRun, WenleiError
from model.runtime.base import batches_by_length
from model.types import FloatArray
from training.adversarial import moved_words
from training.checkpoint import read_facts, restore_state, save_state, write_tensors
from training.data import epoch_batches
from training.device import NumberFormat, autocast, pick_device, pick_precision, to_tensors
from training.optimizing import DEPTH, Rates, make_optimizer, thawed

EVALUATION_TOKENS = 4096  # padded tokens a batch: large enough for the matrix kernels, small enough for the cache


AnyExamples = TypeVar("AnyExamples", bound="Examples")
JudgedExamples = TypeVar("JudgedExamples", bound="Examples", contravariant=True)


class Diverged(WenleiError):
    """The loss is no longer a number."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to train.

    learning_rate: of the encoder, head_learning_rate: of everything on top; both rise over the first `warmup` share
    of all steps, then fall linearly to 0. patience: evaluations without a better score on dev before it stops.

    layer_decay, unfreeze: as of `Rates`. average: of weights, for dev and for what is kept: how much of the mean each
    step leaves, 0.999 say; 0 for none. adversarial: by how much words are moved, see `training.adversarial`; 0 for not.
    smoothing, focal, class_weights, r_drop: as of `Classifying`.
    """

    epochs: int = 2
    batch_size: int = 32
    learning_rate: float = 5e-5
    head_learning_rate: float = 5e-4
    weight_decay: float = 0.01
    warmup: float = 0.1
    clip_norm: float = 1.0
    smoothing: float = 0.0
    focal: float = 0.0
    class_weights: bool = False
    r_drop: float = 0.0
    adversarial: float = 0.0
    average: float = 0.0
    layer_decay: float = 1.0
    unfreeze: float = 0.0
    patience: int = 2
    evaluations_per_epoch: int = 2
    checkpoint_every: int = 200
    precision: NumberFormat = NumberFormat.AUTO

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience", "evaluations_per_epoch", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}; it must be at least 1")


@dataclass(slots=True)
class Progress:
    """Where the loop is; all that a checkpoint holds beside tensors."""

    device: str
    precision: str
    step: int = 0
    best: float = -1.0
    best_step: int = 0
    since_best: int = 0
    seconds: float = 0.0
    scaler: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)


def cost_of(progress: Progress) -> dict[str, Any]:
    """What a training took, for its run's record."""
    return {
        "seconds": round(progress.seconds, 1),
        "steps": progress.step,
        "best_step": progress.best_step,
        "device": progress.device,
        "precision": progress.precision,
        "threads": torch.get_num_threads(),
        "history": progress.history,
    }


class Examples(Protocol):
    """What a network is fitted to or judged by."""

    def __len__(self) -> int: ...

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens an example: (n_examples,)."""
        ...

    def batch(self, rows: Sequence[int]) -> dict[str, NDArray[Any]]:
        """The padded inputs of `rows`: name → (batch, length, …)."""
        ...

    def targets(self, rows: Sequence[int]) -> NDArray[Any]:
        """What the network should say of `rows`: (batch, …)."""
        ...


class Objective(Protocol[JudgedExamples]):
    """What a training minimises, and what it is judged by."""

    @property
    def score(self) -> str:
        """The figure by which the best weights are known."""
        ...

    def loss(self, network: nn.Module, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        """The mean loss of a batch."""
        ...

    def figures(self, network: nn.Module, dev_set: JudgedExamples, *, precision: NumberFormat) -> dict[str, float]:
        """How good the network is on dev, `score` among it; more is better."""
        ...


@dataclass(kw_only=True)
class Training(Generic[AnyExamples]):
    """One training of `classifier`, in place, by `run`.

    Goes on from `checkpoint` where there is one. Set torch's seed before the classifier is made; `run` sets it again.
    """

    classifier: nn.Module
    train_set: AnyExamples
    dev_set: AnyExamples
    objective: Objective[AnyExamples]
    options: Options
    seed: int
    checkpoint: Path

    def __post_init__(self) -> None:
        options = self.options
        self.device = pick_device()
        self.classifier.to(self.device)
        self.precision = pick_precision(options.precision, self.device)
        self.steps_per_epoch = math.ceil(len(self.train_set) / options.batch_size)
        self.total_steps = self.steps_per_epoch * options.epochs
        self.evaluate_every = math.ceil(self.steps_per_epoch / options.evaluations_per_epoch)
        rates = Rates(
            learning_rate=options.learning_rate,
            head_learning_rate=options.head_learning_rate,
            weight_decay=options.weight_decay,
            layer_decay=options.layer_decay,
            unfreeze=options.unfreeze,
        )
        self.optimizer = make_optimizer(self.classifier, rates)
        self.schedule = self.new_schedule()
        self.average = None
        if options.average:
            self.average = AveragedModel(self.classifier, multi_avg_fn=get_ema_multi_avg_fn(options.average))
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision is NumberFormat.FP16)
        self.progress = Progress(device=self.device.type, precision=self.precision.value)

    def run(self) -> Progress:
        """Train, and leave the classifier with the weights that did best on dev.

        Raises:
            Diverged: the loss stopped being a number; the best weights so far stay in `checkpoint`.
            BadRun: the checkpoint was made on another kind of device, or in another precision.
        """
        torch.manual_seed(self.seed)
        if self.state_file.exists():
            self.restore()
            step, total = self.progress.step, self.total_steps
            say(f"从第 {step:,} 步继续，共 {total:,} 步 | going on from step {step:,} of {total:,}")
        started = time.monotonic() - self.progress.seconds
        with progress("训练 training", self.total_steps) as advance:
            advance(self.progress.step)
            for rows in self.remaining_batches():
                if self.progress.since_best >= self.options.patience:
                    break
                self.update(rows)
                advance(1)
                self.progress.seconds = time.monotonic() - started
                at_epoch_end = self.progress.step % self.steps_per_epoch == 0
                if at_epoch_end or self.progress.step % self.steps_per_epoch % self.evaluate_every == 0:
                    self.judge()
                elif self.progress.step % self.options.checkpoint_every == 0:
                    self.save()
        self.classifier.load_state_dict(load_file(self.checkpoint / "best.safetensors", device=str(self.device)))
        return self.progress

    def remaining_batches(self) -> Iterator[list[int]]:
        """The batches from the current step on, epoch after epoch."""
        first = self.progress.step // self.steps_per_epoch
        for epoch in range(first, self.options.epochs):
            batches = epoch_batches(
                self.train_set.lengths, batch_size=self.options.batch_size, seed=self.seed, epoch=epoch
            )
            yield from batches[self.progress.step - epoch * self.steps_per_epoch :]

    def update(self, rows: list[int]) -> None:
        """One step on the texts `rows`."""
        self.classifier.train()
        targets = torch.from_numpy(self.train_set.targets(rows)).to(self.device)
        with autocast(self.device, self.precision):
            inputs = to_tensors(self.train_set.batch(rows), self.device)
            loss = self.objective.loss(self.classifier, inputs, targets)
        if not torch.isfinite(loss):
            raise Diverged(
                f"the loss is {loss.item()} at step {self.progress.step + 1}; lower --learning-rate "
                f"(now {self.options.learning_rate}) or train with --precision fp32"
            )
        self.scaler.scale(loss).backward()
        if self.options.adversarial:
            with moved_words(self.classifier, self.options.adversarial), autocast(self.device, self.precision):
                moved_loss = self.objective.loss(self.classifier, inputs, targets)
            self.scaler.scale(moved_loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.classifier.parameters(), self.options.clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        self.optimizer.zero_grad(set_to_none=True)
        if self.average:
            self.average.update_parameters(self.classifier)
        self.progress.step += 1

    @property
    def judged(self) -> nn.Module:
        """The network that counts: the classifier, or the mean of what it was."""
        return self.average.module if self.average else self.classifier

    def judge(self) -> None:
        """Evaluate on dev; keep the weights if they are the best so far."""
        figures = self.objective.figures(self.judged, self.dev_set, precision=self.precision)
        now = self.progress
        now.history.append({"step": now.step, **figures})
        shown = ", ".join(f"{name} {value:.4f}" for name, value in figures.items())
        say(f"第 {now.step:,} 步 step：开发集 dev  {shown}")
        now.since_best += 1
        if figures[self.objective.score] > now.best:
            now.best, now.best_step, now.since_best = figures[self.objective.score], now.step, 0
            write_tensors(self.checkpoint / "best.safetensors", self.judged.state_dict())
        self.save()

    def new_schedule(self, *, last_step: int = -1) -> torch.optim.lr_scheduler.LambdaLR:
        """The learning rate of every group of weights, after `last_step`."""
        rates: list[Callable[[int], float]] = [
            partial(self.rate_at, depth=group[DEPTH]) for group in self.optimizer.param_groups
        ]
        return torch.optim.lr_scheduler.LambdaLR(self.optimizer, rates, last_epoch=last_step)

    def rate_at(self, step: int, *, depth: float | None = None) -> float:
        """The share of the full learning rate at `step`: linear warm-up, then linear decay; 0 of frozen layers."""
        if not thawed(depth, step / self.total_steps, self.options.unfreeze):
            return 0.0
        warm = max(1, round(self.options.warmup * self.total_steps))
        return min((step + 1) / warm, max(0.0, (self.total_steps - step) / max(1, self.total_steps - warm)))

    @property
    def state_file(self) -> Path:
        return self.checkpoint / "state.safetensors"

    def save(self) -> None:
        """Write all that the next step depends on."""
        self.progress.scaler = self.scaler.state_dict()
        save_state(self.state_file, self.classifier, self.optimizer, facts=asdict(self.progress), average=self.average)

    def restore(self) -> None:
        """Go back to the last `save`."""
        saved = Progress(**read_facts(self.state_file))
        if (saved.device, saved.precision) != (self.progress.device, self.progress.precision):
            raise BadRun(
                f"{self.checkpoint} was made on {saved.device} in {saved.precision}, here it would be "
                f"{self.progress.device} in {self.progress.precision}; go on there, or give another --out"
            )
        self.progress = saved
        restore_state(self.state_file, self.classifier, self.optimizer, device=self.device, average=self.average)
        self.schedule = self.new_schedule(last_step=self.progress.step - 1)
        self.scaler.load_state_dict(self.progress.scaler)


def predict(classifier: nn.Module, dataset: Examples, *, precision: NumberFormat = NumberFormat.FP32) -> FloatArray:
    """Logits of every sample, in order: (n_samples, n_labels)."""
    device = next(classifier.parameters()).device
    rows_done: list[int] = []
    parts: list[FloatArray] = []
    classifier.eval()
    with torch.inference_mode(), autocast(device, precision):
        for rows in batches_by_length(dataset.lengths.tolist(), batch_tokens=EVALUATION_TOKENS):
            logits = classifier(**to_tensors(dataset.batch(rows), device))
            parts.append(logits.float().cpu().numpy())
            rows_done += rows
    return np.concatenate(parts)[np.argsort(rows_done)]
