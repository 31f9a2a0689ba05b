"""How an architecture is trained, step by step, and one training of it from snapshot to finished run."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

from torch import nn

from model.files import only_process
from model.run import Run, start_run
from model.snapshot import Snapshot
from model.tokenization.base import Tokenizer
from model.types import Sample, Split, Taxonomy
from training.data import Dataset, encode, read_splits
from training.evaluate import conclude, judge


class Saved(Protocol):
    """A network that can be kept."""

    def save(self, folder: Path) -> None:
        """Write `config.json` and `model.safetensors`."""
        ...


class Trained(Protocol):
    """A trained network, and what its training took and found."""

    @property
    def classifier(self) -> nn.Module:
        """Ready to predict."""
        ...
