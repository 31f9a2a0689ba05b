"""What classifiers are trained for: the right labels, and, of a GPT, the next tokens too."""

from dataclasses import dataclass
from typing import ClassVar, cast

from torch import Tensor, nn

from model.architectures.gpt import GptClassifier
from model.metrics import activate, evaluate, fit_thresholds
from model.types import Taxonomy
from training.data import Dataset
from training.device import NumberFormat
from training.loop import predict
from training.losses import classification_loss, learns_language


@dataclass(frozen=True, slots=True)
class Classifying:
    """Cross-entropy of the labels of `taxonomy`, `smoothing` of it spread over all; judged by macro-F1."""

    taxonomy: Taxonomy
    smoothing: float = 0.0
    score: ClassVar[str] = "macro_f1"

    def loss(self, network: nn.Module, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        """The mean over a batch; targets: 0/1 (batch, n_labels)."""
        return classification_loss(network(**inputs), targets, self.taxonomy.activation, smoothing=self.smoothing)

    def figures(self, network: nn.Module, dev_set: Dataset, *, precision: NumberFormat) -> dict[str, float]:
        """Accuracy and macro-F1."""
        scores = activate(predict(network, dev_set, precision=precision), self.taxonomy.activation)
        # A sigmoid is far below a half long after its ranking is good, so judge it at the best threshold.
        thresholds = fit_thresholds(scores, dev_set.gold, self.taxonomy.labels) if self.taxonomy.multiple else None
        found = evaluate(scores, dev_set.gold, self.taxonomy, thresholds=thresholds, resamples=1)  # no interval needed
        return {"accuracy": found["accuracy"], "macro_f1": found["macro_f1"]}


@dataclass(frozen=True, slots=True)
class JointlyClassifying(Classifying):
    """GPT's joint objective, L2 + λ·L1: the labels and the next tokens (Radford 2018, equation 5)."""

    lm_weight: float = 0.5

    def loss(self, network: nn.Module, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        """L2 is a mean over texts, L1 one over tokens."""
        if not learns_language(network, self.lm_weight):
            return Classifying.loss(self, network, inputs, targets)
        joint = cast(GptClassifier, network).joint(**inputs)
        labels = classification_loss(joint.logits, targets, self.taxonomy.activation, smoothing=self.smoothing)
        return labels + self.lm_weight * joint.language_model_loss
