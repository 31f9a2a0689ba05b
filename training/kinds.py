"""What is particular to an architecture in fine-tuning: its tokenizer, its network, its objective."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from model.architectures.bert import BertClassifier, Pooling
from model.tokenization import subwords
from model.tokenization.base import Tokenizer
from model.tokenization.subwords import SubwordTokenizer
from model.types import Taxonomy
from training.classifying import Classifying
from training.data import Dataset
from training.loop import Objective
from training.pretrained import Start
from training.start_checks import check_tokenizer


class Reading(NamedTuple):
    """How a start reads texts. save: writes the tokenizer's files into a folder."""

    tokenizer: Tokenizer
    save: Callable[[Path], None]


class PretrainedClassifier(Protocol):
    """What every architecture's classifier, an `nn.Module`, can do beside predicting."""

    def save(self, folder: Path) -> None: ...

    def freeze_encoder(self) -> None: ...


class Kind(Protocol):
    """An architecture, with what only it has to choose."""

    @property
    def arch(self) -> str: ...

    @property
    def config(self) -> dict[str, Any]:
        """What was chosen, for the run's `config`."""
        ...

    def read(self, start: Start, *, max_length: int) -> Reading: ...

    def check(self, reading: Reading, train_set: Dataset, start: Start) -> None:
        """Refuse what does not belong together, before it is trained.

        Raises:
            BadInput: the tokenizer is not the network's, or does not know the texts.
        """
        ...

    def classifier(self, start: Start, reading: Reading, *, n_labels: int, dropout: float) -> PretrainedClassifier: ...

    def objective(self, taxonomy: Taxonomy, *, smoothing: float) -> Objective[Dataset]: ...


@dataclass(frozen=True, slots=True)
class BertKind:
    """BERT and its kin (`nezha`), pooled by `pooling`."""

    arch: str = "bert"
    pooling: Pooling = Pooling.MEAN

    @property
    def config(self) -> dict[str, Any]:
        return {"pooling": self.pooling}

    def read(self, start: Start, *, max_length: int) -> Reading:
        """The start's own sub-words."""

        def save(folder: Path) -> None:
            for name in ("tokenizer.json", "tokenizer_config.json"):
                if (start.folder / name).exists():
                    shutil.copyfile(start.folder / name, folder / name)

        return Reading(subwords.load(start.folder, max_length=max_length), save)

    def check(self, reading: Reading, train_set: Dataset, start: Start) -> None:
        check_tokenizer(cast(SubwordTokenizer, reading.tokenizer), train_set, start)

    def classifier(self, start: Start, _: Reading, *, n_labels: int, dropout: float) -> BertClassifier:
        return BertClassifier.start(start.folder, n_labels=n_labels, pooling=self.pooling, dropout=dropout)

    def objective(self, taxonomy: Taxonomy, *, smoothing: float) -> Objective[Dataset]:
        return Classifying(taxonomy, smoothing=smoothing)
