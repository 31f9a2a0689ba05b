"""What a student learns, stage by stage: the layers of its teacher on the pool, then on the task's texts; then answers.

Every stage has a folder in the checkpoint. One that is done says so there, and a run that was killed goes on with the
next.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load_file
from torch import nn
from transformers import PreTrainedModel

from model.architectures.bert import BertClassifier
from model.architectures.foreign_weights import load_encoder
from model.console import say
from model.files import read_json, write_json
from model.tokenization import load_tokenizer
from model.tokenization.base import Tokenizer
from model.types import Sample, Taxonomy, Text
from training.classifying import Classifying
from training.data import Dataset, EncodedTexts
from training.distillation.aligning import AlignedTexts, Aligning, Alignment, ask_layers
from training.distillation.answers import AnsweredTexts, Answering, ask_answers
from training.distillation.augmentation import Augment, augment
from training.distillation.cache import Cache
from training.distillation.replacing import Replacer
from training.distillation.teacher import Teacher
from training.loop import Options, Training, cost_of

COPIES = 4  # made of a text, unless another number is given
AUGMENTED = "augmented"  # the folder of the texts that were made
GENERAL, LAYERS, ANSWERS = "general", "layers", "answers"  # the stages, in their order
LABELS = "labels"  # the only stage of a control


@dataclass(frozen=True, slots=True)
class DistillOptions:
    """student: a size; or init: a start that the student is. layer_map: as `--layer-map`. unlabelled: the pool.

    control: learn from the labels alone, to see what the teachers are worth. layers: whether the student follows the
    teacher's layers before its answers. random: of random weights. prune: without the scripts that no text is written
    in. augment: where other words for texts of train come from; masked_lm: the start that guesses them; copies: texts
    that are made of each, `COPIES` unless given. temperature: of the answers. limit: train samples at most. general,
    by_layers, by_answers: how each stage is trained; None leaves it out.
    """

    student: str | None = None
    init: str | None = None
    layer_map: str | None = None
    unlabelled: tuple[Path, ...] = ()
    control: bool = False
    layers: bool = True
    random: bool = False
    prune: bool = True
    augment: Augment = Augment.NONE
    masked_lm: str | None = None
    copies: int | None = None
    max_length: int = 128
    dropout: float = 0.1
    temperature: float = 1.0
    limit: int | None = None
    general: Options | None = field(default_factory=Options)
    by_layers: Options | None = field(default_factory=Options)
    by_answers: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One distillation of `classifier`, in place, by `give`.

    layers: the teacher's that the student's own follow. pool: texts without labels. replacer: makes what finds other
    words, to augment the texts of train, if they are to be. held_out: the samples of dev and test, from which such
    texts keep away. cache: the folder where what teachers say is kept.
    """

    classifier: BertClassifier
    tokenizer: Tokenizer
    teachers: Sequence[Teacher]
    layers: Sequence[int] | None
    options: DistillOptions
    train_set: Dataset
    pool: Sequence[Text]
    replacer: Callable[[], Replacer] | None
    dev_set: Dataset
    held_out: Sequence[Sample]
    taxonomy: Taxonomy
    seed: int
    cache: Path

    def give(self, checkpoint: Path) -> dict[str, Any]:
        """Train, stage by stage, and leave the classifier with the weights that did best on dev. Gives the cost.

        Raises:
            Diverged: a loss stopped being a number.
            BadRun: the disk has no room for what the teachers say.
        """
        if self.options.control:
            return {"stages": {LABELS: _stage(checkpoint / LABELS, self.classifier, self._by_labels)}}
        augmented = self._augmented(checkpoint / AUGMENTED)
        texts = [*_texts(self.train_set), *augmented]
        stages: dict[str, Any] = {}
        if self.options.layers and self.layers:
            stages = self._by_layers(checkpoint, texts, self.layers)
        by_answers = partial(self._by_answers, [*texts, *self.pool])
        stages[ANSWERS] = _stage(checkpoint / ANSWERS, self.classifier, by_answers)
        return {"stages": stages, "pool": len(self.pool), "augmented": len(augmented)}

    def _augmented(self, folder: Path) -> list[Text]:
        if self.replacer is None:
            return []
        return augment(
            _texts(self.train_set),
            self.replacer,
            copies=self.options.copies or COPIES,
            seed=self.seed,
            taxonomy=self.taxonomy,
            held_out=self.held_out,
            answers=lambda texts: ask_answers(self.teachers, texts, self.cache),
            folder=folder,
        )

    def _by_layers(self, checkpoint: Path, task_texts: Sequence[Text], layers: Sequence[int]) -> dict[str, Any]:
        teacher = load_encoder(self.teachers[0].folder)
        network = Aligning(self.classifier.encoder, teacher_width=teacher.config.hidden_size)

        def training(texts: Sequence[Text], options: Options, folder: Path) -> Training[Any]:
            return Training(
                classifier=network,
                train_set=self._aligned(texts, teacher, layers),
                dev_set=self._aligned(_texts(self.dev_set), teacher, layers),
                objective=Alignment(),
                options=options,
                seed=self.seed,
                checkpoint=folder,
            )

        stages = ((GENERAL, self.pool, self.options.general), (LAYERS, task_texts, self.options.by_layers))
        return {
            name: _stage(checkpoint / name, network, partial(training, texts, options))
            for name, texts, options in stages
            if texts and options
        }

    def _aligned(self, texts: Sequence[Text], teacher: PreTrainedModel, layers: Sequence[int]) -> AlignedTexts:
        own = EncodedTexts.of(texts, self.tokenizer)
        theirs = EncodedTexts.of(texts, load_tokenizer(self.teachers[0].folder, max_length=self.options.max_length))
        # A pruned vocabulary may cut a text in another way, if it has characters of which no train text had any.
        rows = np.flatnonzero(own.lengths == theirs.lengths).tolist()
        key = ["layers", self.teachers[0].key, list(layers), self.options.max_length]
        said = ask_layers([texts[row] for row in rows], theirs.take(rows), teacher, layers, Cache(self.cache, key))
        return replace(said, encoded=own.take(rows).encoded, padding=own.padding)

    def _by_labels(self, folder: Path) -> Training[Any]:
        return Training(
            classifier=self.classifier,
            train_set=self.train_set,
            dev_set=self.dev_set,
            objective=Classifying(self.taxonomy),
            options=self.options.by_answers,
            seed=self.seed,
            checkpoint=folder,
        )

    def _by_answers(self, texts: Sequence[Text], folder: Path) -> Training[Any]:
        return Training(
            classifier=self.classifier,
            train_set=AnsweredTexts(
                encoded=self.tokenizer.encode(texts),
                padding=self.tokenizer.padding,
                answers=ask_answers(self.teachers, texts, self.cache),
            ),
            dev_set=self.dev_set,
            objective=Answering(self.taxonomy, temperature=self.options.temperature),
            options=self.options.by_answers,
            seed=self.seed,
            checkpoint=folder,
        )


def _texts(split: Dataset) -> list[Text]:
    return [Text(sample.text, sample.pair) for sample in split.samples]


def _stage(folder: Path, network: nn.Module, training: Callable[[Path], Training[Any]]) -> dict[str, Any]:
    """Train in `folder`, or take what was trained there; gives the cost."""
    done = folder / "done.json"
    if done.exists():
        say(f"阶段 {folder.name} 已完成 | stage {folder.name} is done")
        network.load_state_dict(load_file(folder / "best.safetensors"))
        cost: dict[str, Any] = read_json(done)
        return cost
    say(f"阶段 {folder.name} | stage {folder.name}")
    cost = cost_of(training(folder).run())
    write_json(done, cost)
    return cost
