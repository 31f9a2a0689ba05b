"""Where training computes and in which number format: picked from what the machine has."""

from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


class NumberFormat(StrEnum):
    """Number format of the matrix products; weights and their updates are always float32."""

    AUTO = "auto"
    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"


def pick_device() -> torch.device:
    """A GPU where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def pick_precision(asked: NumberFormat, device: torch.device) -> NumberFormat:
    """What `auto` means on `device`: bf16 where its arithmetic is native, fp16 on older GPUs, else fp32."""
    if asked is not NumberFormat.AUTO:
        return asked
    if device.type == "cuda":
        return NumberFormat.BF16 if torch.cuda.is_bf16_supported(including_emulation=False) else NumberFormat.FP16
    return NumberFormat.BF16 if torch.cpu._is_avx512_bf16_supported() else NumberFormat.FP32


def autocast(device: torch.device, precision: NumberFormat) -> AbstractContextManager[None]:
    """Matrix products in `precision`, everything delicate in float32."""
    if precision is NumberFormat.FP32:
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16 if precision is NumberFormat.BF16 else torch.float16)


def to_tensors(batch: dict[str, NDArray[Any]], device: torch.device) -> dict[str, Tensor]:
    """The arrays of a batch on `device`."""
    return {name: torch.from_numpy(array).to(device) for name, array in batch.items()}
