"""How good a model is on texts that it was never trained on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from training.device import NumberFormat, autocast, to_tensors
from training.pretrain.objectives import Batch, Objective
from training.pretrain.processes import Processes


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Finds the held-out figures of `objective.model`. batches: this process's rows of the held-out texts."""

    objective: Objective
    batches: Sequence[Batch]
    processes: Processes
    device: torch.device
    precision: NumberFormat

    def __call__(self, *, seed: int) -> dict[str, float]:
        """The objective's figure, bits a character, and the mean of each part of the loss; `seed` of what it draws."""
        parts = self.objective.parts
        totals = torch.zeros(2 * len(parts) + 2, dtype=torch.float64, device=self.device)
        self.objective.model.eval()
        torch.manual_seed(seed)
        for batch in self.batches:
            with torch.inference_mode(), autocast(self.device, self.precision):
                losses = self.objective.losses(to_tensors(batch.inputs, self.device))
            totals += torch.cat(
                [
                    torch.stack([losses[part].double() for part in parts]),
                    totals.new_tensor([*(batch.counts[part] for part in parts), batch.characters, batch.spelling]),
                ]
            )
        *both, characters, spelling = self.processes.add(totals).tolist()
        sums, counts = dict(zip(parts, both[: len(parts)], strict=True)), both[len(parts) :]
        nats = sum(sums[part] for part in self.objective.judged)
        means = {part: sums[part] / max(count, 1.0) for part, count in zip(parts, counts, strict=True)}
        return {self.objective.figure: (nats / math.log(2) + spelling) / max(characters, 1.0), **means}
