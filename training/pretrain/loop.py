"""The loop that pretrains: warm-up and decay, mixed precision, accumulation, several processes, exact resume.

Nothing of a step's chance is carried over: masks, pairs and dropout follow from the seed, the step and the row or the
process. So a checkpoint holds weights, the optimizer's state and the place in the corpus, and a training that goes on
from one has the losses of a training that was never broken off.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from model.console import say
from model.errors import BadRun
from training.checkpoint import read_facts, restore_state, save_state
from training.device import NumberFormat, autocast, pick_device, pick_precision, to_tensors
from training.loop import Diverged
from training.pretrain.curves import CurveFile
from training.pretrain.live import live
from training.pretrain.masking import RowRandom
from training.pretrain.memory import NotEnoughMemory, is_out_of_memory
from training.pretrain.objectives import Batch, Objective
from training.pretrain.options import Options, make_optimizer
from training.pretrain.processes import Processes
from training.pretrain.store import PartOf
from training.pretrain.windows import Position, Window

HELD_OUT_SEED = 1_234_567  # of the masks and the order of held-out texts: the same for every run, so that runs compare
SAVE_PAUSE = 20  # times as long as the last checkpoint took to write, at least, until the next
SMALLEST_SCALE = 2.0**-6  # fp16 gradients that need to be scaled down so far are none


class Windows(Protocol):
    """Where texts come from: a token store."""

    def batches(
        self, split: PartOf, *, max_length: int, batch_tokens: int, seed: int, start: Position = ...
    ) -> Iterator[tuple[Position, list[Window]]]:
        """Batches of windows, each with the place after it: endless for `train`, once through for `held_out`."""
        ...

    def random_window(
        self, split: PartOf, rng: np.random.Generator, *, not_document: int, max_tokens: int
    ) -> Window | None:
        """A text of another document."""
        ...


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
    position: dict[str, Any] = field(default_factory=lambda: Position().to_json())
    scaler: dict[str, Any] = field(default_factory=dict)
    held_out: dict[str, float] = field(default_factory=dict)
    pending: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Upcoming:
    """The batches of a step, this process's rows of them. position: the place after them."""

    batches: list[Batch]
    position: Position


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
        self.random = RowRandom(self.seed)
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
        held_out = self.held_out_batches()
        before = self.progress.seconds
        started = time.monotonic()
        try:
            if not resumed:
                self.judge(held_out)
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
                    if math.floor(self.done * self.options.evaluations) > self.progress.evaluations:
                        self.progress.evaluations = math.floor(self.done * self.options.evaluations)
                        self.judge(held_out)
                        self.save()
                    elif time.monotonic() - self.last_saved > max(self.options.checkpoint_seconds, self.save_pause):
                        self.save()
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise NotEnoughMemory(
                f"a batch of --batch-tokens {self.options.batch_tokens} does not fit into the memory of "
                f"{self.device}; try --batch-tokens {max(self.options.max_length, self.options.batch_tokens // 2)} "
                f"--accumulate {2 * self.options.accumulate}, which trains alike, or --checkpoint-activations"
            ) from None
        return self.progress

    @property
    def done(self) -> float:
        """The share of the training that is behind."""
        return self.options.share_done(step=self.progress.step, seconds=self.progress.seconds)

    def steps(self) -> Iterator[Upcoming]:
        """The batches of one step after another, from the place where the progress stands."""
        position, step = Position.from_json(self.progress.position), self.progress.step
        length, size = self._sizes()
        source = self.windows.batches("train", max_length=length, batch_tokens=size, seed=self.seed, start=position)
        while True:
            row, batches = 0, []
            for _ in range(self.options.accumulate):
                position, windows = next(source)
                batches.append(self.prepare(windows, split="train", random=self.random, step=step, first_row=row))
                row += len(windows)
            yield Upcoming([batch for batch in batches if batch], position)
            step += 1

    def prepare(
        self, windows: Sequence[Window], *, split: PartOf, random: RowRandom, step: int, first_row: int
    ) -> Batch | None:
        """This process's rows of `windows` as a batch, or None if it has none of them."""
        rank, world = self.processes.rank, self.processes.world
        mine = windows[rank::world]
        if not mine:
            return None

        def other_text(generator: np.random.Generator, of: Window, longest: int) -> Window | None:
            return self.windows.random_window(split, generator, not_document=of.document, max_tokens=longest)

        return self.objective.collate(
            mine, lambda number: random.at(step, first_row + rank + number * world), other_text
        )

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
        rate = self.options.rate_at(self._progress_at(now.step, float(seconds)))
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

    def _diverged(self, what: str) -> Diverged:
        return Diverged(
            f"{what} at step {self.progress.step + 1}; lower --learning-rate (now {self.options.learning_rate:g}) "
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

    def _sizes(self) -> tuple[int, int]:
        """The most tokens of a window, and of a batch of windows."""
        framing, length = self.objective.framing, self.options.max_length
        # Windows are batched by their own tokens; what is put around them counts as well.
        whole = self.options.batch_tokens * (length - framing) // length
        return length - framing, whole

    def held_out_batches(self) -> list[Batch]:
        """The held-out texts, `held_out_windows` at most over all processes, with masks that never change."""
        random, batches, n_windows = RowRandom(HELD_OUT_SEED), [], 0
        length, size = self._sizes()
        for _, windows in self.windows.batches("held_out", max_length=length, batch_tokens=size, seed=HELD_OUT_SEED):
            windows = windows[: self.options.held_out_windows - n_windows]
            batch = self.prepare(windows, split="held_out", random=random, step=0, first_row=n_windows)
            n_windows += len(windows)
            if batch:
                batches.append(batch)
            if n_windows >= self.options.held_out_windows:
                break
        return batches

    def judge(self, held_out: Sequence[Batch]) -> None:
        """Find the held-out figures, and write them down."""
        parts = self.objective.parts
        totals = torch.zeros(2 * len(parts) + 2, dtype=torch.float64, device=self.device)
        self.model.eval()
        torch.manual_seed(self._dropout_seed(0))  # of samples that an objective may draw; dropout is off
        for batch in held_out:
            with torch.inference_mode(), autocast(self.device, self.precision):
                losses = self.objective.losses(to_tensors(batch.inputs, self.device))
            totals += torch.cat(
                [
                    torch.stack([losses[part].double() for part in parts]),
                    totals.new_tensor([*(batch.counts[part] for part in parts), batch.characters, batch.spelling]),
                ]
            )
        *both, characters, spelling = self.processes.add(totals).tolist()
        sums, counts = both[: len(parts)], both[len(parts) :]
        by_part = dict(zip(parts, sums, strict=True))
        bits = (sum(by_part[part] for part in self.objective.judged) / math.log(2) + spelling) / max(characters, 1.0)
        means = {part: by_part[part] / max(count, 1.0) for part, count in zip(parts, counts, strict=True)}
        now = self.progress
        now.held_out = {self.objective.figure: bits, **means}
        if self.processes.is_first:
            self.curves.add({"step": now.step, "seconds": round(now.seconds, 2), "held_out": now.held_out})
        figure = self.objective.figure.replace("_", " ")
        self.say(f"第 {now.step:,} 步：留出文本 | step {now.step:,}: held-out {figure} {bits:.4f}")

    def note(self, losses: dict[str, float]) -> None:
        """Write down the losses since the last point, in the mean."""
        now, parts = self.progress, self.objective.parts
        now.pending = [*now.pending, *losses.values()]
        if now.step % self.log_every:
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
