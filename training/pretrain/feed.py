"""What goes into each step: batches of windows as a model's inputs, of every process its rows, masked by lot.

Nothing of a step's chance is carried over: masks and pairs follow from the seed, the step and the row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from training.pretrain.masking import RowRandom
from training.pretrain.objectives import Batch, Objective
from training.pretrain.options import Options
from training.pretrain.processes import Processes
from training.pretrain.store import PartOf
from training.pretrain.windows import Position, Window

HELD_OUT_SEED = 1_234_567  # of what is judged, and how it is masked: the same for every run, so that runs compare
PASSAGE = 1_000  # characters of a held-out document that are judged together, or not


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


@dataclass(frozen=True, slots=True)
class Upcoming:
    """The batches of a step, this process's rows of them. position: the place after them."""

    batches: list[Batch]
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """The batches of one process."""

    objective: Objective
    windows: Windows
    options: Options
    seed: int
    processes: Processes

    def steps(self, position: Position, step: int) -> Iterator[Upcoming]:
        """The batches of one step after another, from `position`, where `step` begins."""
        length, size = self._sizes()
        source = self.windows.batches("train", max_length=length, batch_tokens=size, seed=self.seed, start=position)
        random = RowRandom(self.seed)
        while True:
            row, batches = 0, []
            for _ in range(self.options.accumulate):
                position, windows = next(source)
                batches.append(self._prepare(windows, split="train", random=random, step=step, first_row=row))
                row += len(windows)
            yield Upcoming([batch for batch in batches if batch], position)
            step += 1

    def held_out(self) -> list[Batch]:
        """What `drawn` leaves of the held-out texts, with masks that never change."""
        length, size = self._sizes()
        source = self.windows.batches("held_out", max_length=length, batch_tokens=size, seed=HELD_OUT_SEED)
        random, batches, row = RowRandom(HELD_OUT_SEED), [], 0
        for windows in drawn([windows for _, windows in source], n_characters=self.options.held_out_characters):
            batches.append(self._prepare(windows, split="held_out", random=random, step=0, first_row=row))
            row += len(windows)
        return [batch for batch in batches if batch]

    def _prepare(
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

    def _sizes(self) -> tuple[int, int]:
        """The most tokens of a window, and of a batch of windows."""
        framing, length = self.objective.framing, self.options.max_length
        # Windows are batched by their own tokens; what is put around them counts as well.
        whole = self.options.batch_tokens * (length - framing) // length
        return length - framing, whole


def drawn(batches: Sequence[Sequence[Window]], *, n_characters: int) -> list[list[Window]]:
    """About `n_characters` of the texts, all if they are no more: those windows that begin in a passage drawn by lot.

    The lot knows documents and characters only, so that whatever the vocabulary the same texts are judged.
    """
    share = n_characters / max(sum(window.n_characters for windows in batches for window in windows), 1)
    return [[window for window in windows if share >= 1 or _lot(window) < share] for windows in batches]


def _lot(window: Window) -> float:
    """The number that the passage in which `window` begins has drawn, 0 to 1."""
    return float(np.random.default_rng((HELD_OUT_SEED, window.document, window.place // PASSAGE)).random())
