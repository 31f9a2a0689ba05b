"""The one assertion behind every port and every export: ours computes what the reference does, at every real position.

`assert_same_states` holds a network against another, `assert_graph_answers` an ONNX graph against its network.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from training import onnx_file

Inputs = Mapping[str, NDArray[Any]]  # input name → (batch, length, …)

# (batch, length): special tokens alone, an odd length, padded texts of several lengths, the longest of tiny models
SHAPES = ((1, 2), (1, 33), (3, 7), (5, 64))


def random_inputs(
    batch: int, length: int, *, n_tokens: int, first_token: int = 4, with_types: bool = False, seed: int = 0
) -> dict[str, NDArray[np.int64]]:
    """Ids of `first_token` … `n_tokens` - 1; every row but the first is padded at random, on the right."""
    random = np.random.default_rng([seed, batch, length])
    lengths = random.integers(1, length + 1, (batch, 1))
    lengths[0] = length
    inputs = {
        "input_ids": random.integers(first_token, n_tokens, (batch, length)),
        "attention_mask": (np.arange(length) < lengths).astype(np.int64),
    }
    if with_types:
        inputs["token_type_ids"] = np.broadcast_to(np.arange(length) >= length // 2, (batch, length)).astype(np.int64)
    return inputs


def to_tensors(inputs: Inputs) -> dict[str, Tensor]:
    """The same for a network."""
    return {name: torch.from_numpy(value) for name, value in inputs.items()}


def spread_weights(network: nn.Module, *, std: float = 0.3, seed: int = 0) -> None:
    """Draw every weight anew, large enough that each activation, mask and bias shows in what comes out."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in network.parameters():
            weight.normal_(std=std, generator=generator)


def assert_same_states(ours: nn.Module, reference: nn.Module, inputs: Inputs, *, atol: float = 1e-5) -> None:
    """Hidden states of every layer are equal wherever the attention mask is 1; both networks go to `eval()`."""
    tensors = to_tensors(inputs)
    with torch.inference_mode():
        states = [network.eval()(**tensors, output_hidden_states=True).hidden_states for network in (ours, reference)]
    assert len(states[0]) == len(states[1]), f"{len(states[0])} states, the reference has {len(states[1])}"
    real = tensors["attention_mask"].bool() if "attention_mask" in tensors else ...
    for layer, (mine, expected) in enumerate(zip(*states, strict=True)):
        torch.testing.assert_close(mine[real], expected[real], atol=atol, rtol=1e-5, msg=_at(f"layer {layer}"))


def assert_graph_answers(
    graph: onnx.ModelProto, classifier: nn.Module, batches: Iterable[Inputs], *, folder: Path, atol: float = 1e-5
) -> None:
    """The graph, written into `folder` and opened by onnxruntime, gives the classifier's logits on every batch."""
    path = folder / "parity.onnx"
    onnx_file.save(graph, path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # for tiny graphs more of them only wait for one another
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    classifier.eval()
    for inputs in batches:
        with torch.inference_mode():
            expected: Tensor = classifier(**to_tensors(inputs))
        (actual,) = session.run(None, dict(inputs))
        shapes = {name: value.shape for name, value in inputs.items()}
        torch.testing.assert_close(
            torch.from_numpy(actual), expected, atol=atol, rtol=1e-5, msg=_at(f"inputs {shapes}")
        )


def _at(place: str) -> Callable[[str], str]:
    return lambda difference: f"{place}: {difference}"
