"""What is particular to an architecture in fine-tuning: its tokenizer, its network, its objective."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

from model.architectures.bert import BertClassifier, Pooling
from model.architectures.elmo_classifier import ElmoClassifier, ElmoPooling
from model.architectures.gpt import GptClassifier
from model.tokenization import gpt_frame, subwords, words
from model.tokenization.base import Tokenizer
from model.types import Taxonomy
from training.classifying import classifying, jointly_classifying
from training.data import Dataset
from training.loop import Objective, Options
from training.pretrained import Start
from training.start_checks import check_embeddings, check_known, check_pairs, check_words


class PretrainedClassifier(Protocol):
    """What every architecture's classifier, an `nn.Module`, can do beside predicting."""

    def save(self, folder: Path) -> None: ...

    def freeze_encoder(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Opened:
    """A start, ready to be trained.

    save: writes the tokenizer's files into a folder. check: refuses texts that the tokenizer does not know.
    classifier: the network under a new head, from `n_labels`, `dropout` and `from_scratch`.
    """

    tokenizer: Tokenizer
    save: Callable[[Path], None]
    check: Callable[[Dataset], None]
    classifier: Callable[..., PretrainedClassifier]


class Kind(Protocol):
    """An architecture, with what only it has to choose."""

    @property
    def arch(self) -> str: ...

    @property
    def config(self) -> dict[str, Any]:
        """What was chosen, for the run's `config`."""
        ...

    def open(self, start: Start, *, max_length: int) -> Opened:
        """The tokenizer of `start`, and what is made of both.

        Raises:
            BadInput: the tokenizer can't be read, or is not the network's.
        """
        ...

    def objective(self, taxonomy: Taxonomy, options: Options, train_set: Dataset) -> Objective[Dataset]: ...


@dataclass(frozen=True, slots=True)
class BertKind:
    """BERT and its kin (`nezha`), pooled by `pooling`."""

    arch: str = "bert"
    pooling: Pooling = Pooling.MEAN

    @property
    def config(self) -> dict[str, Any]:
        return {"pooling": self.pooling}

    def open(self, start: Start, *, max_length: int) -> Opened:
        """The start's own sub-words."""
        tokenizer = subwords.load(start.folder, max_length=max_length)
        check_embeddings(tokenizer.vocabulary_size, start)
        return Opened(
            tokenizer=tokenizer,
            save=start.copy_tokenizer,
            check=partial(check_known, name="input_ids", unknown=tokenizer.unknown_id, start=start),
            classifier=partial(BertClassifier.start, start.folder, pooling=self.pooling),
        )

    def objective(self, taxonomy: Taxonomy, options: Options, train_set: Dataset) -> Objective[Dataset]:
        return classifying(taxonomy, options, train_set)


@dataclass(frozen=True, slots=True)
class GptKind:
    """GPT. lm_weight: λ of the joint objective. similarity: the texts of a pair have no order."""

    arch: ClassVar[str] = "gpt"
    lm_weight: float = 0.5
    similarity: bool = False

    @property
    def config(self) -> dict[str, Any]:
        return {"lm_weight": self.lm_weight, "similarity": self.similarity}

    def open(self, start: Start, *, max_length: int) -> Opened:
        """The start's sub-words in GPT's frame, whose tokens get embeddings of their own."""
        check_embeddings(subwords.vocabulary_size(start.folder), start)
        tokenizer = gpt_frame.load(start.folder, max_length=max_length, similarity=self.similarity)

        def check(train_set: Dataset) -> None:
            if self.similarity:
                check_pairs(train_set)
            check_known(train_set, name="input_ids", unknown=tokenizer.unknown_id, start=start)

        return Opened(
            tokenizer=tokenizer,
            save=tokenizer.save,
            check=check,
            classifier=partial(
                GptClassifier.start,
                start.folder,
                vocabulary_size=tokenizer.vocabulary_size,
            ),
        )

    def objective(self, taxonomy: Taxonomy, options: Options, train_set: Dataset) -> Objective[Dataset]:
        return jointly_classifying(taxonomy, options, train_set, lm_weight=self.lm_weight)


@dataclass(frozen=True, slots=True)
class ElmoKind:
    """ELMo, its words pooled by `pooling`."""

    arch: ClassVar[str] = "elmo"
    pooling: ElmoPooling = ElmoPooling.MEAN

    @property
    def config(self) -> dict[str, Any]:
        return {"pooling": self.pooling}

    def open(self, start: Start, *, max_length: int) -> Opened:
        """Words by the start's vocabulary, the others by their characters: only unknown characters say nothing."""
        tokenizer = words.load(start.folder, max_length=max_length)
        check_words(tokenizer, start)
        return Opened(
            tokenizer=tokenizer,
            save=tokenizer.save,
            check=partial(check_known, name="char_ids", unknown=words.UNKNOWN_CHARACTER, start=start),
            classifier=partial(ElmoClassifier.start, start.folder, pooling=self.pooling),
        )

    def objective(self, taxonomy: Taxonomy, options: Options, train_set: Dataset) -> Objective[Dataset]:
        return classifying(taxonomy, options, train_set)
