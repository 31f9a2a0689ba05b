"""How a student is distilled; a recipe like any other, whose run evaluates, exports and serves as all do."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import PreTrainedModel

from model.architectures.bert import BertClassifier, Pooling
from model.architectures.foreign_weights import load_encoder, new_encoder, read_settings
from model.console import say
from model.errors import BadInput
from model.snapshot import Snapshot
from model.tokenization import subwords
from model.types import Sample, Split, Taxonomy, Text
from training.data import encode
from training.distillation.augmentation import Augment
from training.distillation.lesson import DistillOptions, Lesson
from training.distillation.masked_words import MaskedWords
from training.distillation.replacing import Replacer
from training.distillation.student import (
    StudentSize,
    check_heads,
    check_no_larger,
    check_vocabulary,
    new_student,
    read_layer_map,
    read_size,
)
from training.distillation.teacher import Teacher
from training.distillation.texts import read_pool, source
from training.distillation.vocabulary import pruned, scripts_of
from training.distillation.word_neighbours import WordNeighbours
from training.pretrained import TOKENIZER_FILES
from training.pretrained import resolve as resolve_start
from training.recipe import Prepared, Trained
from training.start_checks import check_architecture

PRETRAINED, TEACHERS = "pretrained", "teachers"  # folders in the home
POOLINGS = (Pooling.MEAN, Pooling.CLS)  # that a student can have; the others read several layers


class Shape(NamedTuple):
    """What a student is.

    origin: the folder whose kind of encoder and vocabulary it has. layers: the teacher's layers that its own follow, or
    are cut from; None where it has nothing to do with them.
    """

    origin: Path
    size: StudentSize
    layers: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class DistillRecipe:
    """How a student learns from `teachers`; of several, from the layers of the first.

    home: the folder where starts, and what teachers say, are kept.
    """

    snapshot: Snapshot
    teachers: tuple[Teacher, ...]
    options: DistillOptions
    shape: Shape
    seed: int
    home: Path

    @classmethod
    def resolve(
        cls, snapshot: Snapshot, teachers: Sequence[Path], options: DistillOptions, *, seed: int, home: Path
    ) -> "DistillRecipe":
        """The recipe with its teachers opened.

        Raises:
            BadRun, BadBundle: a teacher is not there, or knows other labels.
            BadInput: the student can't follow it, or its start can't be had.
        """
        if (options.student is None) == (options.init is None):
            raise BadInput("a student is either of a size, --student tiny4-312 say, or a start, --init hfl/rbt3 say")
        _check_control(options)
        _check_augmentation(options)
        opened = tuple(Teacher.open(path) for path in teachers)
        for teacher in opened:
            teacher.check(snapshot)
        if options.student is not None:
            shape = _cut(options.student, opened[0], options)
        else:
            shape = _started(str(options.init), opened[0], options, cache=home / PRETRAINED)
        recipe = cls(snapshot, opened, options, shape, seed, home)
        made_of = str(options.init or opened[0].path)
        check_architecture(shape.origin, init=made_of, arch=recipe.arch, max_length=options.max_length)
        return recipe

    @property
    def arch(self) -> str:
        return "nezha" if read_settings(self.shape.origin)["model_type"] == "nezha" else "bert"

    @property
    def taxonomy(self) -> Taxonomy:
        return self.snapshot.taxonomy

    @property
    def pooling(self) -> Pooling:
        """The teacher's where a student can have it."""
        wanted = self.teachers[0].config.get("pooling")
        return Pooling(wanted) if wanted in POOLINGS else Pooling.MEAN

    @property
    def config(self) -> dict[str, Any]:
        options = asdict(self.options)
        return {
            **options,
            "unlabelled": [source(path) for path in self.options.unlabelled],
            "size": asdict(self.shape.size),
            "layer_map": self.shape.layers,
            "pooling": self.pooling,
            "teachers": [{"path": str(one.path), "key": one.key} for one in self.teachers],
        }

    @property
    def limit(self) -> int | None:
        return self.options.limit

    def prepare(self, splits: Mapping[Split, Sequence[Sample]]) -> Prepared:
        """Read the pool, encode the splits, and make the student.

        Raises:
            BadInput: the pool holds a text of dev or test, or can't be read.
        """
        held_out = [sample for split, samples in splits.items() if split is not Split.TRAIN for sample in samples]
        labelled = [Text(sample.text, sample.pair) for sample in splits[Split.TRAIN]]
        pool = read_pool(self.options.unlabelled, self.snapshot, held_out=held_out, labelled=labelled)
        origin = self.shape.origin
        if self.options.prune:
            origin = pruned(origin, scripts_of([*labelled, *pool]), cache=self.home / PRETRAINED)
        tokenizer = subwords.load(origin, max_length=self.options.max_length)
        datasets = {split: encode(samples, tokenizer, self.taxonomy) for split, samples in splits.items()}
        n_dev = len(splits[Split.DEV])
        say(
            f"训练 {len(labelled):,} 条，池 {len(pool):,} 条，开发 {n_dev:,} 条，词表 {tokenizer.vocabulary_size:,} | "
            f"{len(labelled):,} train samples, {len(pool):,} texts in the pool, {n_dev:,} dev samples, a vocabulary of "
            f"{tokenizer.vocabulary_size:,}"
        )
        torch.manual_seed(self.seed)
        encoder = self._student(origin)
        classifier = BertClassifier(
            encoder, n_labels=len(self.taxonomy), pooling=self.pooling, dropout=self.options.dropout
        )
        lesson = Lesson(
            classifier=classifier,
            tokenizer=tokenizer,
            teachers=self.teachers,
            layers=self.shape.layers,
            options=self.options,
            train_set=datasets[Split.TRAIN],
            pool=pool,
            replacer=self._replacer([*labelled, *pool]),
            dev_set=datasets[Split.DEV],
            held_out=held_out,
            taxonomy=self.taxonomy,
            seed=self.seed,
            cache=self.home / TEACHERS,
        )

        def learn(checkpoint: Path) -> Trained:
            return Trained(classifier=classifier, cost=lesson.give(checkpoint), save=save)

        def save(folder: Path) -> None:
            classifier.save(folder)
            for name in TOKENIZER_FILES:
                if (origin / name).exists():
                    shutil.copyfile(origin / name, folder / name)

        return Prepared(tokenizer=tokenizer, datasets=datasets, train=learn)

    def _replacer(self, texts: Sequence[Text]) -> Callable[[], Replacer] | None:
        """What finds other words for texts of train. texts: those that may be counted for it."""
        if self.options.augment is Augment.NONE:
            return None
        if self.options.augment is Augment.NEIGHBOURS:
            return partial(WordNeighbours, texts, seed=self.seed)
        return partial(MaskedWords, resolve_start(str(self.options.masked_lm), cache=self.home / PRETRAINED).folder)

    def _student(self, origin: Path) -> PreTrainedModel:
        dropout = self.options.dropout
        if self.options.init is None and self.shape.layers:
            return new_student(origin, self.shape.size, self.shape.layers, dropout=dropout, random=self.options.random)
        make = new_encoder if self.options.random else load_encoder
        return make(origin, hidden_dropout_prob=dropout, attention_probs_dropout_prob=0.0)

    def settled(self, cost: Mapping[str, Any]) -> "DistillRecipe":  # noqa: ARG002  nothing of it is chosen on dev
        """The same: every stage stops where it is best on dev."""
        return self


def _check_control(options: DistillOptions) -> None:
    if options.control and (options.unlabelled or options.augment is not Augment.NONE):
        useless = "--unlabelled" if options.unlabelled else "--augment"
        raise BadInput(
            f"{useless} has no meaning with --control, which learns from the labels of train alone; leave it out"
        )


def _check_augmentation(options: DistillOptions) -> None:
    if options.augment is Augment.NONE and options.copies:
        raise BadInput(
            f"--copies {options.copies} has no meaning unless --augment makes texts: masked-lm or neighbours"
        )
    if options.augment is Augment.MASKED_LM and options.masked_lm is None:
        raise BadInput(
            "--augment masked-lm needs a masked language model; give the start of the teacher as --masked-lm, or a "
            "run of wenlei pretrain --arch bert"
        )
    if options.augment is not Augment.MASKED_LM and options.masked_lm:
        raise BadInput(f"--masked-lm {options.masked_lm} is only read with --augment masked-lm; give both or neither")


def _cut(student: str, teacher: Teacher, options: DistillOptions) -> Shape:
    """A student of the size `student`, cut from its teacher."""
    teacher.check_layers()
    its = StudentSize.of(teacher.folder)
    size = read_size(student, its)
    if options.layers:
        check_heads(size, its, f"--student {student}")
    return Shape(teacher.folder, size, read_layer_map(options.layer_map, student=size, teacher=its))


def _started(init: str, teacher: Teacher, options: DistillOptions, *, cache: Path) -> Shape:
    """A student that is the start `init`."""
    origin = resolve_start(init, cache=cache).folder
    size = StudentSize.of(origin)
    if not options.layers:
        if options.layer_map:
            raise BadInput("--layer-map has no meaning with --init and --no-layers; leave it out")
        return Shape(origin, size, None)
    teacher.check_layers()
    its = StudentSize.of(teacher.folder)
    check_no_larger(size, its, f"--init {init}")
    check_heads(size, its, f"--init {init}")
    check_vocabulary(origin, teacher.folder, f"--init {init}")
    return Shape(origin, size, read_layer_map(options.layer_map, student=size, teacher=its))
