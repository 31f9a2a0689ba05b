"""What a person sees of a pretraining while it runs: a bar on a terminal, a line now and then in a log."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from model.console import messages, say

LOG_SECONDS = 30.0  # at least so long between two lines in a log


@dataclass(slots=True)
class Live:
    """Where the training stands; told after every step."""

    bar: Progress | None
    started: float = field(default_factory=time.monotonic)
    first_done: float | None = None
    quiet_until: float = 0.0

    def tell(
        self, *, step: int, done: float, loss: float, parts: Mapping[str, float], rate: float, speed: float
    ) -> None:
        """done: share of the training that is behind. rate: learning rate. speed: real tokens a second."""
        now = time.monotonic()
        if self.first_done is None:
            self.first_done, self.started = done, now
        losses = f"{loss:.3f}"
        if len(parts) > 1:
            losses += " (" + ", ".join(f"{name} {value:.3f}" for name, value in parts.items()) + ")"
        text = f"第 {step:,} 步 step  损失 loss {losses}  {speed:,.0f} 词元 tokens/s  学习率 rate {rate:.1e}"
        if self.bar:
            self.bar.update(self.bar.task_ids[0], completed=done, description=text)
        elif now >= self.quiet_until:
            self.quiet_until = now + LOG_SECONDS
            say(f"{text}  {done:.0%}{self._remaining(done, now)}")

    def _remaining(self, done: float, now: float) -> str:
        behind = done - (self.first_done or 0.0)
        if behind <= 0:
            return ""
        seconds = (now - self.started) / behind * (1 - done)
        return f"  还需 left {seconds / 60:.0f} min" if seconds >= 90 else f"  还需 left {seconds:.0f} s"


@contextmanager
def live(*, shown: bool) -> Iterator[Live | None]:
    """The display until the block ends; None where `shown` is off, as in all processes but one."""
    if not shown:
        yield None
    elif not messages.is_terminal:
        yield Live(bar=None)
    else:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=messages) as bar:
            bar.add_task("预训练 pretraining", total=1.0)
            yield Live(bar=bar)
