"""What classifiers are trained for: the right labels, and, of a GPT, the next tokens too."""

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from model.architectures.gpt import GptClassifier
from model.errors import BadInput
from model.metrics import activate, evaluate, fit_thresholds
from model.types import Taxonomy
from training.data import Dataset
from training.device import NumberFormat
from training.loop import Options, predict
from training.losses import class_weights, classification_loss, divergence, learns_language


@dataclass(frozen=True, slots=True)
class Classifying:
    """Cross-entropy of the labels of `taxonomy`; judged by macro-F1.

    smoothing, focal, weights: as of `classification_loss`. r_drop: α, the weight of how far two answers to one text
    are apart, each under a dropout of its own (Liang 2021).
    """

    taxonomy: Taxonomy
    smoothing: float = 0.0
    focal: float = 0.0
    weights: Tensor | None = None
    r_drop: float = 0.0
    score: ClassVar[str] = "macro_f1"

    def loss(self, network: nn.Module, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        """The mean over a batch; targets: 0/1 (batch, n_labels)."""
        if not self.r_drop:
            return self.of_labels(network(**inputs), targets)
        twice = network(**{name: torch.cat([values, values]) for name, values in inputs.items()})
        first, second = twice.chunk(2)
        apart = divergence(first, second, self.taxonomy.activation)
        return self.of_labels(twice, torch.cat([targets, targets])) + self.r_drop * apart

    def of_labels(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The loss of logits (batch, n_labels)."""
        return classification_loss(
            logits,
            targets,
            self.taxonomy.activation,
            smoothing=self.smoothing,
            focal=self.focal,
            weights=None if self.weights is None else self.weights.to(logits.device),
        )

    def figures(self, network: nn.Module, dev_set: Dataset, *, precision: NumberFormat) -> dict[str, float]:
        """Accuracy and macro-F1."""
        scores = activate(predict(network, dev_set, precision=precision), self.taxonomy.activation)
        # A sigmoid is far below a half long after its ranking is good, so judge it at the best threshold.
        thresholds = fit_thresholds(scores, dev_set.gold, self.taxonomy.labels) if self.taxonomy.multiple else None
        found = evaluate(scores, dev_set.gold, self.taxonomy, thresholds=thresholds, resamples=1)  # no interval needed
        return {"accuracy": found["accuracy"], "macro_f1": found["macro_f1"]}


def classifying(taxonomy: Taxonomy, options: Options, train_set: Dataset) -> Classifying:
    """What `options` say of the loss; the weights of classes are counted in `train_set`."""
    return Classifying(taxonomy, **_chosen(options, train_set))


def jointly_classifying(
    taxonomy: Taxonomy, options: Options, train_set: Dataset, *, lm_weight: float
) -> "JointlyClassifying":
    """The same with GPT's joint objective.

    Raises:
        BadInput: R-Drop is asked for, which reads every text twice, and so would the language model.
    """
    if options.r_drop:
        raise BadInput("--r-drop has no meaning with --arch gpt, whose texts are read by a language model, too")
    return JointlyClassifying(taxonomy, **_chosen(options, train_set), lm_weight=lm_weight)


def _chosen(options: Options, train_set: Dataset) -> dict[str, Any]:
    weights = class_weights(train_set.gold) if options.class_weights else None
    return {"smoothing": options.smoothing, "focal": options.focal, "weights": weights, "r_drop": options.r_drop}


@dataclass(frozen=True, slots=True)
class JointlyClassifying(Classifying):
    """GPT's joint objective, L2 + λ·L1: the labels and the next tokens (Radford 2018, equation 5)."""

    lm_weight: float = 0.5

    def loss(self, network: nn.Module, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        """L2 is a mean over texts, L1 one over tokens."""
        if not learns_language(network, self.lm_weight):
            return Classifying.loss(self, network, inputs, targets)
        joint = cast(GptClassifier, network).joint(**inputs)
        return self.of_labels(joint.logits, targets) + self.lm_weight * joint.language_model_loss
