"""Teachers: trained classifiers, as runs or bundles, whose answers and layers a student learns from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from model.bundle import open_bundle
from model.errors import BadInput
from model.files import sha256_file
from model.run import Run
from model.snapshot import Snapshot
from model.tokenization import load_tokenizer
from model.tokenization.base import Tokenizer
from model.types import Taxonomy, Text
from training.architectures import ARCHITECTURES
from training.data import EncodedTexts
from training.distillation.cache import Arrays
from training.evaluate import check_model_kept, check_taxonomy
from training.loop import predict

WITH_LAYERS = ("bert", "nezha")  # architectures whose layers a student of their kind can follow


@dataclass(frozen=True, slots=True)
class Teacher:
    """A trained classifier.

    folder: of its weights. temperature: its answers are its logits, divided by this. key: SHA-256 of the weights.
    """

    path: Path
    folder: Path
    arch: str
    config: Mapping[str, Any]
    taxonomy: Taxonomy
    temperature: float
    key: str

    @classmethod
    def open(cls, path: Path) -> "Teacher":
        """The teacher in `path`, a run or a bundle.

        Raises:
            BadRun, BadBundle: it is neither, or not whole.
        """
        if (path / "bundle.json").exists():
            bundle = open_bundle(path)
            manifest = bundle.manifest
            arch, config, taxonomy = manifest.arch, manifest.run["config"], manifest.taxonomy
            folder, temperature = path, manifest.temperature
        else:
            run = Run.open(path)
            check_model_kept(run)
            arch, config, taxonomy = run.arch, run.config, run.taxonomy
            folder, temperature = run.model_path, run.calibration["temperature"]
        weights = sorted(folder.glob("*.safetensors"))
        return cls(
            path=path,
            folder=folder,
            arch=arch,
            config=config,
            taxonomy=taxonomy,
            temperature=temperature,
            key="-".join(sha256_file(each)[:16] for each in weights),
        )

    def check(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot whose labels are not the teacher's.

        Raises:
            BadRun: they are others.
        """
        check_taxonomy(self.taxonomy, snapshot, self.path)

    def classifier(self) -> nn.Module:
        """The network, ready to predict."""
        return ARCHITECTURES[self.arch].load(self.folder, self.config)

    def tokenizer(self) -> Tokenizer:
        """Its own."""
        return load_tokenizer(self.folder, max_length=self.config["max_length"])

    def answerer(self, texts: Sequence[Text]) -> Callable[[slice], Arrays]:
        """What gives its answers to a part of `texts`, for the cache; the network is read when it is first asked.

        answers: logits (n_texts, n_labels), divided by the temperature.
        """
        read = cache(lambda: (self.classifier(), self.tokenizer()))

        def answer(part: slice) -> Arrays:
            classifier, tokenizer = read()
            logits = predict(classifier, EncodedTexts.of(texts[part], tokenizer))
            return {"answers": (logits / self.temperature).astype(np.float32)}

        return answer

    def check_layers(self) -> None:
        """Refuse a teacher whose layers no student can follow.

        Raises:
            BadInput: it has no Transformer encoder.
        """
        if self.arch not in WITH_LAYERS:
            raise BadInput(
                f"--teacher {self.path} is of --arch {self.arch}, which has no attention layers that a student could "
                "be made of, or follow; give --init with a start, and --no-layers to learn from its answers alone"
            )
