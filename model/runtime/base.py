"""The interface between serving and inference engines: encode, run, decode.

An engine implements `logits`; the rest is shared. Encoding is kept apart from running so that a scheduler can
group texts of like length before it runs them.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from model.runtime.decode import Decoder
from model.text import Normaliser, check_text
from model.tokenization.base import Encoded
from model.types import FloatArray, Prediction, Taxonomy, Text


class Classifier(Protocol):
    """A loaded classifier. Both methods may be called from several threads at a time."""

    name: str
    version: str
    taxonomy: Taxonomy
    decoder: Decoder

    def encode(self, texts: Sequence[Text]) -> list[Encoded]:
        """Normalise and tokenize.

        Raises:
            BadText: a text is empty, too long, or not text.
        """
        ...

    def logits(self, batch: Sequence[Encoded]) -> FloatArray:
        """Run the model on a non-empty batch: (batch, n_labels)."""
        ...


def classify(
    classifier: Classifier, texts: Sequence[Text], *, top_k: int = 1, batch_tokens: int = 4096
) -> list[Prediction]:
    """One prediction a text, in order; run in batches of like length, `batch_tokens` padded tokens each."""
    encoded = classifier.encode(texts)
    predictions: dict[int, Prediction] = {}
    for rows in batches_by_length([item.length for item in encoded], batch_tokens=batch_tokens):
        batch = [encoded[row] for row in rows]
        decoded = classifier.decoder.decode(
            classifier.logits(batch), top_k=top_k, truncated=[item.truncated for item in batch]
        )
        predictions.update(zip(rows, decoded, strict=True))
    return [predictions[row] for row in range(len(texts))]


def logits_of(
    classifier: Classifier,
    texts: Sequence[Text],
    *,
    batch_tokens: int = 512,  # short texts gain nothing from more on a CPU
    on_texts: Callable[[int], None] = lambda _: None,
) -> FloatArray:
    """The logits of `texts`, in order, run in batches of like length: (n_texts, n_labels).

    Raises:
        BadText: a text is empty, too long, or not text.
    """
    encoded = classifier.encode(texts)
    logits = np.empty((len(texts), len(classifier.taxonomy)), np.float32)
    for rows in batches_by_length([item.length for item in encoded], batch_tokens=batch_tokens):
        logits[rows] = classifier.logits([encoded[row] for row in rows])
        on_texts(len(rows))
    return logits


def normal_text(text: Text, normaliser: Normaliser, *, where: str) -> Text:
    """`text` as tokenizers take it; checked before, and after, when there may be nothing left of it.

    Raises:
        BadText: it or its pair is empty, too long, or not text; the message begins with `where`.
    """

    def normal(part: str, place: str) -> str:
        return check_text(normaliser(check_text(part, where=place)), where=place)

    return Text(normal(text.text, where), None if text.pair is None else normal(text.pair, f"{where}.text_pair"))


def batches_by_length(lengths: Sequence[int], *, batch_tokens: int) -> list[list[int]]:
    """Row numbers in batches of at most `batch_tokens` padded tokens, shortest texts first; none is left out."""
    batches: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batches and (len(batches[-1]) + 1) * lengths[row] <= batch_tokens:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches
