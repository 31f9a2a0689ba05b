"""The loop that pretrains: warm-up and decay, mixed precision, accumulation, several processes, exact resume.

Nothing of a step's chance is carried over: masks, pairs and dropout follow from the seed, the step and the row or the
process. So a checkpoint holds weights, the optimizer's state and the place in the corpus, and a training that goes on
from one has the losses of a training that was never broken off.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from model.console import say
from model.errors import BadRun
from training.checkpoint import read_facts, restore_state, save_state
from training.device import NumberFormat, autocast, pick_device, pick_precision, to_tensors
from training.loop import Diverged
from training.pretrain.curves import CurveFile
from training.pretrain.feed import Feed, Upcoming, Windows
from training.pretrain.held_out import Judge
from training.pretrain.live import live
from training.pretrain.memory import NotEnoughMemory, is_out_of_memory
from training.pretrain.objectives import Objective
from training.pretrain.options import Options, make_optimizer
from training.pretrain.processes import Processes
from training.pretrain.windows import Position

SAVE_PAUSE = 20  # times as long as the last checkpoint took to write, at least, until the next
SMALLEST_SCALE = 2.0**-6  # fp16 gradients that need to be scaled down so far are none


@dataclass(slots=True)
class Progress:
    """Where the loop is; all that a checkpoint holds beside tensors.

    seconds: since the start, pauses between processes left out. busy: those of them that went into steps.
    tokens: real ones that were read. held_out: part of it → value, as it was last.
    """

    device: str
    precision: str
    step: int = 0
    seconds: float = 0.0
    busy: float = 0.0
    tokens: int = 0
    evaluations: int = 0
    planned_evaluations: int = 1
    position: dict[str, Any] = field(default_factory=lambda: Position().to_json())
    scaler: dict[str, Any] = field(default_factory=dict)
    held_out: dict[str, float] = field(default_factory=dict)
    pending: list[float] = field(default_factory=list)


@dataclass(kw_only=True)
class Pretraining:
    """One pretraining of `objective.model`, in place, by `run`.

    checkpoint: the folder of the state it goes on from, where there is one. curves: the file of its curves.
    """

    objective: Objective
    windows: Windows
    options: Options
    seed: int
    checkpoint: Path
    curves: CurveFile
    processes: Processes = field(default_factory=Processes)

    def __post_init__(self) -> None:
        self.device = pick_device()
        self.model: nn.Module = self.objective.model.to(self.device)
        self.precision = pick_precision(self.options.precision, self.device)
        self.optimizer = make_optimizer(self.model, self.options)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision is NumberFormat.FP16)
        self.feed = Feed(
            objective=self.objective,
            windows=self.windows,
            options=self.options,
            seed=self.seed,
            processes=self.processes,
        )
        self.progress = Progress(device=self.device.type, precision=self.precision.value)
        self.log_every = max(1, (self.options.steps or 0) // 1000) if self.options.steps else 10
        self.last_saved, self.save_pause = time.monotonic(), 0.0

    def run(self) -> Progress:
        """Train until the steps or the minutes are over, then judge the held-out texts.

        Raises:
            Diverged: a loss or a gradient stopped being a number.
            NotEnoughMemory: a batch did not fit.
            BadRun: the checkpoint was made on another kind of device, or in another precision.
        """
        self.processes.agree(self.model)
        resumed = self.state_file.exists()
        if resumed:
            self.restore()
            self.say(f"从第 {self.progress.step:,} 步继续 | going on from step {self.progress.step:,}")
        if self.processes.is_first:
            self.curves.cut_after(self.progress.step if resumed else None)
        judge = Judge(
            objective=self.objective,
            batches=self.feed.held_out(),
            processes=self.processes,
            device=self.device,
            precision=self.precision,
        )
        before = self.progress.seconds
        started = time.monotonic()
        try:
            if not resumed:
                self.judge(judge)
                elapsed = time.monotonic() - started if self.processes.is_first else 0.0
                seconds = float(self.processes.add(torch.tensor(elapsed, device=self.device)))
                self.progress.planned_evaluations = self.options.affordable_evaluations(seconds)
            with live(shown=self.processes.is_first) as display:
                source = self.steps()
                upcoming = next(source)
                while self.done < 1:
                    step_started = time.monotonic()
                    upcoming, losses = self.update(upcoming, source, clock=before + step_started - started)
                    self.progress.busy += time.monotonic() - step_started
                    self.note(losses)
                    if display:
                        display.tell(
                            step=self.progress.step,
                            done=self.done,
                            loss=sum(losses.values()),
                            parts=losses,
                            rate=self.optimizer.param_groups[0]["lr"],
                            speed=self.progress.tokens / self.progress.busy,
                        )
                    if math.floor(self.done * self.progress.planned_evaluations) > self.progress.evaluations:
                        self.progress.evaluations = math.floor(self.done * self.progress.planned_evaluations)
                        self.judge(judge)
                        self.save()
                    elif time.monotonic() - self.last_saved > max(self.options.checkpoint_seconds, self.save_pause):
                        self.save()
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise NotEnoughMemory(self._no_room()) from None
        return self.progress

    def _no_room(self) -> str:
        length, size = self.options.max_length, self.options.batch_tokens
        half = f"--batch-tokens {size // 2} --accumulate {2 * self.options.accumulate}, which trains alike, or "
        return (
            f"a batch of --batch-tokens {size} does not fit into the memory of {self.device}; try "
            f"{half if size // 2 >= length else f'a --max-length below {length}, or '}--checkpoint-activations, "
            "and another --out"
        )

    @property
    def done(self) -> float:
        """The share of the training that is behind."""
        return self.options.share_done(step=self.progress.step, seconds=self.progress.seconds)

    def steps(self) -> Iterator[Upcoming]:
        """The batches of one step after another, from the place where the progress stands."""
        return self.feed.steps(Position.from_json(self.progress.position), self.progress.step)

    def update(
        self, upcoming: Upcoming, source: Iterator[Upcoming], *, clock: float
    ) -> tuple[Upcoming, dict[str, float]]:
        """One step. Gives the batches of the next one, made while the device is busy, and the mean loss of each part.

        clock: seconds since the start; the first process's counts.
        """
        parts, now = self.objective.parts, self.progress
        known: list[float] = [sum(batch.counts[part] for batch in upcoming.batches) for part in parts]
        known += [sum(batch.tokens for batch in upcoming.batches), clock if self.processes.is_first else 0.0]
        *counts, tokens, seconds = self.processes.add(torch.tensor(known, dtype=torch.float64, device=self.device))
        rate = self.options.rate_at(self._progress_at(now.step, float(seconds)), step=now.step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * self.options.learning_rate
        self.model.train()
        torch.manual_seed(self._dropout_seed(now.step))
        sums = torch.zeros(len(parts), dtype=torch.float64, device=self.device)
        for batch in upcoming.batches:
            with autocast(self.device, self.precision):
                losses = self.objective.losses(to_tensors(batch.inputs, self.device))
            shares = [losses[part] / count.clamp(min=1).float() for part, count in zip(parts, counts, strict=True)]
            self.scaler.scale(torch.stack(shares).sum()).backward()
            sums += torch.stack([losses[part].detach() for part in parts])
        self.processes.add_gradients(self.model.parameters())
        self.processes.add(sums)
        position, upcoming = upcoming.position, next(source)
        means = (sums / torch.stack(counts).clamp(min=1)).tolist()
        if not math.isfinite(sum(means)):
            raise self._diverged(f"the loss is {sum(means)}")
        self._apply()
        now.step += 1
        now.seconds = float(seconds)
        now.tokens += int(tokens)
        now.position = position.to_json()
        return upcoming, dict(zip(parts, means, strict=True))

    def _apply(self) -> None:
        """Change the weights by the gradients, clipped."""
        self.scaler.unscale_(self.optimizer)
        norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip_norm))
        if not math.isfinite(norm) and not (self.scaler.is_enabled() and self.scaler.get_scale() > SMALLEST_SCALE):
            raise self._diverged(f"the gradient's norm is {norm}")
        self.scaler.step(self.optimizer)  # leaves a step out whose gradients were scaled beyond fp16
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)

    def _diverged(self, what: str, *, after: int | None = None) -> Diverged:
        where = f"at step {self.progress.step + 1}" if after is None else f"after step {after}"
        return Diverged(
            f"{what} {where}; lower --learning-rate (now {self.options.learning_rate:g}) "
            f"or train with --precision fp32 (now {self.precision}), and give another --out"
        )

    def _progress_at(self, step: int, seconds: float) -> float:
        """The share that is behind in the middle of the step after `step`: no step has a learning rate of 0."""
        if self.options.steps is None:
            return self.options.share_done(step=step, seconds=seconds)
        return (step + 0.5) / self.options.steps

    def _dropout_seed(self, step: int) -> int:
        words = np.random.SeedSequence((self.seed, step, self.processes.rank)).generate_state(2)
        return int(words[0]) << 31 | int(words[1]) >> 1

    def judge(self, judge: Judge) -> None:
        """Find the held-out figures, and write them down.

        Raises:
            Diverged: they are no numbers.
        """
        now = self.progress
        now.held_out = judge(seed=self._dropout_seed(0))  # of samples that an objective may draw; dropout is off
        bits = now.held_out[self.objective.figure]
        if not all(map(math.isfinite, now.held_out.values())):
            raise self._diverged(f"the held-out loss is {bits}", after=now.step)
        if self.processes.is_first:
            self.curves.add({"step": now.step, "seconds": round(now.seconds, 2), "held_out": now.held_out})
        figure = self.objective.figure.replace("_", " ")
        self.say(f"第 {now.step:,} 步：留出文本 | step {now.step:,}: held-out {figure} {bits:.4f}")

    def note(self, losses: dict[str, float]) -> None:
        """Write down the losses since the last point, in the mean."""
        now, parts = self.progress, self.objective.parts
        now.pending = [*now.pending, *losses.values()]
        if now.step % self.log_every and self.done < 1:
            return
        values = np.array(now.pending).reshape(-1, len(parts)).mean(0)
        now.pending = []
        if self.processes.is_first:
            self.curves.add(
                {
                    "step": now.step,
                    "loss": float(values.sum()),
                    "parts": dict(zip(parts, values.tolist(), strict=True)),
                    "learning_rate": self.optimizer.param_groups[0]["lr"],
                    "tokens": now.tokens,
                    "seconds": round(now.seconds, 2),
                    "tokens_per_second": round(now.tokens / max(now.busy, 1e-9)),
                }
            )

    def say(self, message: str) -> None:
        """Tell it once, however many processes there are."""
        if self.processes.is_first:
            say(message)

    @property
    def state_file(self) -> Path:
        return self.checkpoint / "state.safetensors"

    def save(self) -> None:
        """Write all that the next step depends on; the first process does."""
        started = time.monotonic()
        if self.processes.is_first:
            self.progress.scaler = self.scaler.state_dict()
            save_state(self.state_file, self.model, self.optimizer, facts=asdict(self.progress))
        self.last_saved = time.monotonic()
        self.save_pause = SAVE_PAUSE * (self.last_saved - started)

    def restore(self) -> None:
        """Go back to the last `save`."""
        saved = Progress(**read_facts(self.state_file))
        if (saved.device, saved.precision) != (self.progress.device, self.progress.precision):
            raise BadRun(
                f"{self.checkpoint} was made on {saved.device} in {saved.precision}, here it would be "
                f"{self.progress.device} in {self.progress.precision}; go on there, or give another --out"
            )
        self.progress = saved
        restore_state(self.state_file, self.model, self.optimizer, device=self.device)
        self.scaler.load_state_dict(saved.scaler)
