"""The processes of one pretraining: each works on its rows of every batch, and what they find out is added up.

`torchrun` starts them and says who is who; without it there is one process, and nothing to add.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

T = TypeVar("T")

PATIENCE = timedelta(hours=12)  # the first process prepares the corpus while the others wait; torchrun sees who dies


@dataclass(frozen=True, slots=True)
class Processes:
    """This process, `rank` of `world`."""

    rank: int = 0
    world: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that writes and speaks."""
        return self.rank == 0

    def add(self, tensor: Tensor) -> Tensor:
        """The sum of all processes' `tensor`, in place."""
        if self.world > 1:
            dist.all_reduce(tensor)
        return tensor

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give every process the sum of all gradients; of a weight that has none here, it is 0."""
        if self.world == 1:
            return
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in trained]
        together = self.add(torch.cat([gradient.flatten() for gradient in gradients]))
        for parameter, gradient in zip(trained, together.split([p.numel() for p in trained]), strict=True):
            parameter.grad = gradient.view_as(parameter)

    def agree(self, network: nn.Module) -> None:
        """Give every process the first one's weights."""
        if self.world > 1:
            for tensor in (*network.parameters(), *network.buffers()):
                dist.broadcast(tensor.data, 0)

    def first(self, work: Callable[[], T]) -> T | None:
        """What `work` gives in the first process, None in the others, which wait for it.

        Where it fails, its error is the only one: the others end without a word.
        """
        if self.world == 1:
            return work()
        failed = torch.zeros(1, device="cuda" if torch.cuda.is_available() else "cpu")
        try:
            result = work() if self.is_first else None
        except Exception:
            dist.broadcast(failed.fill_(1), 0)
            raise
        dist.broadcast(failed, 0)
        if failed.item():
            sys.exit(2)
        return result

    def wait(self) -> None:
        """Go on when all processes are here."""
        if self.world > 1:
            dist.barrier()


@contextmanager
def join_processes() -> Iterator[Processes]:
    """The processes that torchrun started, connected until the block ends: by nccl on GPUs, by gloo on CPUs."""
    if not dist.is_torchelastic_launched():
        yield Processes()
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(dist.get_node_local_rank(fallback_rank=0))
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo", timeout=PATIENCE)
    try:
        yield Processes(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()
