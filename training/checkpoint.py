"""Checkpoints: all that the next step of a training depends on, in one safetensors file that is whole or not there.

Weights, the optimizer's state, torch's generators, and whatever small facts the loop keeps about itself.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from model.errors import BadRun
from model.files import flush

FACTS = "progress"  # the metadata key under which a loop's own facts are kept
STEPS = "steps"  # the metadata key of the steps that each group of an optimizer has counted, where it counts them so


def save_state(
    path: Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    facts: dict[str, Any],
    average: nn.Module | None = None,
) -> None:
    """Write `network`, `optimizer`, the generators and `facts` (JSON values) to `path`.

    average: of the network's weights, if one is kept.

    Raises:
        BadRun: there is no room.
    """
    tensors = {f"weights.{name}": value for name, value in own_weights(network).items()}
    if average is not None:
        tensors |= {f"average.{name}": value for name, value in own_weights(average).items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": torch.as_tensor(value) for name, value in state.items()}
    tensors["generator.cpu"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["generator.cuda"] = torch.cuda.get_rng_state()
    steps = [group.get("step") for group in optimizer.param_groups]
    write_tensors(path, tensors, metadata={FACTS: json.dumps(facts), STEPS: json.dumps(steps)})


def read_facts(path: Path) -> dict[str, Any]:
    """The `facts` that `save_state` wrote.

    Raises:
        BadRun: the file can't be read.
    """
    try:
        with safe_open(path, framework="pt") as file:
            facts: dict[str, Any] = json.loads(file.metadata()[FACTS])
            return facts
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise BadRun(
            f"{path} can't be read as a checkpoint: {error!r}; remove it, and the training begins again"
        ) from None


def restore_state(
    path: Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    device: torch.device,
    average: nn.Module | None = None,
) -> None:
    """Bring `network`, `optimizer`, the generators and the average back to what `save_state` saw."""
    parts: dict[str, dict[str, Tensor]] = {"weights": {}, "average": {}, "optimizer": {}, "generator": {}}
    with safe_open(path, framework="pt", device=str(device)) as file:
        for key in file.keys():  # noqa: SIM118  a safetensors file is no dict
            part, name = key.split(".", 1)
            parts[part][name] = file.get_tensor(key)
        steps = json.loads(file.metadata()[STEPS])
    load_own_weights(network, parts["weights"])
    if average is not None:
        load_own_weights(average, parts["average"])
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in parts["optimizer"].items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    for group, step in zip(optimizer.param_groups, steps, strict=True):
        if step is not None:
            group["step"] = step
    torch.set_rng_state(parts["generator"]["cpu"].cpu())
    if device.type == "cuda":
        torch.cuda.set_rng_state(parts["generator"]["cuda"].cpu())


def own_weights(network: nn.Module) -> dict[str, Tensor]:
    """The weights of `network` by name; one that has several names, an output tied to the input say, under its first.

    Safetensors files hold no weight twice.
    """
    seen: set[tuple[int, int]] = set()
    weights = {}
    for name, value in network.state_dict().items():
        place = (value.data_ptr(), value.numel())
        if value.numel() == 0 or place not in seen:
            weights[name] = value
            seen.add(place)
    return weights


def load_own_weights(network: nn.Module, weights: dict[str, Tensor]) -> None:
    """Set the weights of `network` to those that `own_weights` gave."""
    tied = {name: value for name, value in network.state_dict().items() if name not in own_weights(network)}
    network.load_state_dict({**tied, **weights})  # a tied one is set under its first name


def write_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file; a reader sees the old one or the new one, never half of either.

    Raises:
        BadRun: there is no room.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    try:
        save_file(tensors, partial, metadata=metadata)
    except SafetensorError as error:
        raise BadRun(f"{path} can't be written: {error}; make room, then run the same command again") from None
    flush(partial)
    partial.replace(path)
