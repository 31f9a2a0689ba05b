"""Whether a batch fits into memory, found out before the start by two small ones, of which is counted what they keep.

Autograd keeps, for the way back, tensors in proportion to the tokens of a batch; that is most of what training takes.
"""

import re
from pathlib import Path

import torch
from torch import Tensor

from model.errors import BadInput
from training.device import NumberFormat, autocast, pick_device, pick_precision, to_tensors
from training.pretrain.masking import RowRandom
from training.pretrain.objectives import Batch, Objective
from training.pretrain.options import Optimizer, Options

MEMORY_FILE = Path("/proc/meminfo")
OPTIMIZER_BYTES = 4 + 8  # a weight's gradient and its two moments; the weight itself is there already
LAMB_BYTES = 8  # LAMB forms all updates, with a copy, before it applies them
ON_THE_WAY_BACK = 1.6  # gradients of what was kept come beside it: measured 1.4 (BERT, ELMo) to 1.7 (GPT)
PROBE_TOKENS = 512  # of the smaller batch
SPARE = 0.9  # of what is free may be filled


class NotEnoughMemory(BadInput):
    """A batch, or the model itself, does not fit."""


def check_memory(objective: Objective, options: Options, *, world: int = 1) -> None:
    """Refuse a batch that won't fit on the device there is.

    world: processes that share a batch; on a CPU they share the memory too.

    Raises:
        NotEnoughMemory: it won't; the message says which one would.
    """
    device = pick_device()
    precision = pick_precision(options.precision, device)
    free = free_memory(device)
    if free is None:
        return
    if device.type == "cpu":
        free = free // world
    objective.model.to(device)
    probes = make_probes(objective, options.max_length)
    kept = [kept_bytes(objective, probe, device=device, precision=precision) for probe in probes]
    a_token = ON_THE_WAY_BACK * (kept[1] - kept[0]) / (probes[1].places - probes[0].places)
    a_weight = OPTIMIZER_BYTES + (LAMB_BYTES if options.optimizer is Optimizer.LAMB else 0)
    weights = sum(parameter.numel() for parameter in objective.model.parameters())
    fixed = a_weight * weights + max(0.0, kept[0] - a_token * probes[0].places)
    wanted = fixed + a_token * options.batch_tokens / world
    if wanted <= SPARE * free:
        return
    fits = int((SPARE * free - fixed) * world / a_token) // 64 * 64
    sizes = f"about {_gigabytes(wanted)} of memory, {_gigabytes(free)} are free on {device}"
    if fits < options.max_length:
        raise NotEnoughMemory(
            f"the model, its optimizer and --batch-tokens {options.batch_tokens} need {sizes}, too little for a single "
            f"text of --max-length {options.max_length}; take a smaller --config or --max-length, "
            "--checkpoint-activations, or a larger machine"
        )
    more = -(-options.batch_tokens * options.accumulate // fits)
    raise NotEnoughMemory(
        f"--batch-tokens {options.batch_tokens} needs {sizes}; --batch-tokens {fits} would fit, and with "
        f"--accumulate {more} trains alike; --checkpoint-activations needs less too"
    )


def make_probes(objective: Objective, max_length: int) -> tuple[Batch, Batch]:
    """Two batches of the longest texts, which need the most a token; the second is twice the first."""
    text = objective.example(max_length - objective.framing)
    n, random = max(1, PROBE_TOKENS // max_length), RowRandom(0)
    one, two = (
        objective.collate([text] * count, lambda number: random.at(0, number), lambda *_: None) for count in (n, 2 * n)
    )
    return one, two


def kept_bytes(objective: Objective, batch: Batch, *, device: torch.device, precision: NumberFormat) -> int:
    """Bytes that autograd keeps of a forward pass over `batch`, weights left out."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in objective.model.parameters()}
    storages: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    objective.model.train()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), autocast(device, precision):
        losses = objective.losses(to_tensors(batch.inputs, device))
    total = sum(storages.values())
    del losses  # until here nothing was freed, so that no address stood for two tensors
    return total


def free_memory(device: torch.device) -> int | None:
    """Bytes that can be had on `device`; None where nobody tells."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", MEMORY_FILE.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch could not get the memory it asked for; on a CPU that is a plain RuntimeError."""
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "allocate memory" in str(error)
    )


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.1f} GB"
