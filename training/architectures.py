"""The architectures of runs, by name: how a trained network is read back, and which ONNX graphs it has.

A new architecture takes its place here, and, for its training, among the recipes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import onnx
from torch import nn

from model.architectures.bert import BertClassifier, Pooling
from model.architectures.elmo_classifier import ElmoClassifier, ElmoPooling
from model.architectures.gpt import GptClassifier
from model.architectures.light import LIGHT, LightClassifier
from model.architectures.linear import LinearClassifier
from model.run import Run
from model.tokenization import load_tokenizer
from model.types import Text
from training import onnx_bert, onnx_elmo, onnx_gpt, onnx_light, onnx_linear
from training.onnx_builder import Precision


@dataclass(frozen=True, slots=True)
class Architecture:
    """load: of the run's `model/` folder and its config. graph: of the network and a precision, one of `precisions`."""

    load: Callable[[Path, Mapping[str, Any]], nn.Module]
    graph: Callable[[Any, str, Run], onnx.ModelProto]
    precisions: tuple[str, ...] = ("fp32",)


def load_classifier(run: Run) -> nn.Module:
    """The trained network of `run`, ready to predict."""
    return ARCHITECTURES[run.arch].load(run.model_path, run.config)


def build_graph(classifier: nn.Module, precision: str, run: Run) -> onnx.ModelProto:
    """The ONNX model of the trained network of `run`, in a precision that its architecture has."""
    return ARCHITECTURES[run.arch].graph(classifier, precision, run)


def _gpt_graph(classifier: GptClassifier, precision: str, run: Run) -> onnx.ModelProto:
    return onnx_gpt.build(classifier, precision=Precision(precision), similarity=run.config["similarity"])


def _elmo(folder: Path, config: Mapping[str, Any]) -> ElmoClassifier:
    return ElmoClassifier.load(folder, pooling=ElmoPooling(config["pooling"]))


def _bert(folder: Path, config: Mapping[str, Any]) -> BertClassifier:
    return BertClassifier.load(folder, pooling=Pooling(config["pooling"]))


def _bert_graph(classifier: BertClassifier, precision: str, run: Run) -> onnx.ModelProto:
    return onnx_bert.build(classifier, precision=Precision(precision), with_types=_tells_pairs_apart(run))


def _tells_pairs_apart(run: Run) -> bool:
    """Whether the tokenizer gives the second text of a pair another token type."""
    tokenizer = load_tokenizer(run.model_path, max_length=run.config["max_length"])
    (pair,) = tokenizer.encode([Text("甲", "乙")])
    return bool(pair.inputs["token_type_ids"].any())


def _light(kind: type[LightClassifier], folder: Path, _: Mapping[str, Any]) -> nn.Module:
    return kind.load(folder)


ARCHITECTURES = {
    "linear": Architecture(
        load=lambda folder, _: LinearClassifier.load(folder), graph=lambda network, *_: onnx_linear.build(network)
    ),
    "bert": Architecture(load=_bert, graph=_bert_graph, precisions=("fp32", "int8")),
    "nezha": Architecture(load=_bert, graph=_bert_graph, precisions=("fp32", "int8")),
    "gpt": Architecture(
        load=lambda folder, _: GptClassifier.load(folder), graph=_gpt_graph, precisions=("fp32", "int8")
    ),
    "elmo": Architecture(load=_elmo, graph=lambda network, *_: onnx_elmo.build(network)),
    **{
        arch: Architecture(load=partial(_light, kind), graph=lambda network, *_: onnx_light.build(network))
        for arch, kind in LIGHT.items()
    },
}
