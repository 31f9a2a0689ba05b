"""Light networks as baselines: a vocabulary of the train texts, random weights, and the same loop as all others."""

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from model.architectures.light import LIGHT
from model.errors import BadSnapshot
from model.tokenization import subwords
from model.tokenization.ngrams import NgramTokenizer
from model.types import Sample, Split, Taxonomy
from training.baselines import LinearOptions, fit_tokenizer
from training.classifying import classifying
from training.data import encode
from training.loop import Options
from training.recipe import Prepared, by_loop
from training.vocabulary_files import SPECIAL, wordpiece

FEWEST_TIMES = 2  # that train has to have a character; all others are one: unknown
INPUTS = ("input_ids", "attention_mask")
MOST_NGRAMS = 100_000  # of fasttext, the commonest; each has a vector


@dataclass(frozen=True, slots=True)
class LightOptions:
    """max_length: tokens a text is cut to; fasttext reads all of it. limit: train samples at most."""

    max_length: int = 128
    dropout: float = 0.3
    limit: int | None = None
    loop: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class LightRecipe:
    """How the network `arch`, one of `LIGHT`, is trained for `taxonomy`."""

    taxonomy: Taxonomy
    arch: str
    options: LightOptions
    seed: int

    @property
    def config(self) -> dict[str, Any]:
        return asdict(self.options)

    @property
    def limit(self) -> int | None:
        return self.options.limit

    def prepare(self, splits: Mapping[Split, Sequence[Sample]]) -> Prepared:
        """Encode the splits by the characters, or the n-grams, of train alone.

        Raises:
            BadSnapshot: train has no n-grams, or hardly any characters.
        """
        tokenizer, size = self._vocabulary(splits[Split.TRAIN])
        datasets = {split: encode(samples, tokenizer, self.taxonomy) for split, samples in splits.items()}
        torch.manual_seed(self.seed)
        classifier = LIGHT[self.arch](size=size, n_labels=len(self.taxonomy), dropout=self.options.dropout)

        def save(folder: Path) -> None:
            classifier.save(folder)
            tokenizer.save(folder)

        loop = self.options.loop
        objective = classifying(self.taxonomy, loop, datasets[Split.TRAIN])
        learn = by_loop(classifier, datasets, objective, options=loop, seed=self.seed, save=save)
        return Prepared(tokenizer=tokenizer, datasets=datasets, train=learn)

    def settled(self, cost: Mapping[str, Any]) -> "LightRecipe":  # noqa: ARG002  nothing of it is chosen on dev
        """The same: every training stops where it is best on dev."""
        return self

    def _vocabulary(self, samples: Sequence[Sample]) -> tuple[NgramTokenizer | subwords.SubwordTokenizer, int]:
        """The tokenizer, and how many rows its embeddings need."""
        if self.arch == "fasttext":
            ngrams = fit_tokenizer(samples, LinearOptions(most=MOST_NGRAMS), n_labels=len(self.taxonomy))
            return ngrams, len(ngrams.vocabulary)
        characters = fit_characters(samples, max_length=self.options.max_length)
        return characters, characters.vocabulary_size


def fit_characters(samples: Sequence[Sample], *, max_length: int) -> subwords.SubwordTokenizer:
    """Single characters of the texts, in the frame of BERT; of Latin words and numbers, too.

    Raises:
        BadSnapshot: there are hardly any.
    """
    counts = Counter(char for sample in samples for char in f"{sample.text}{sample.pair or ''}".lower())
    known = sorted(char for char, count in counts.items() if count >= FEWEST_TIMES and not char.isspace())
    if len(known) < subwords.FEWEST_TOKENS:
        raise BadSnapshot(
            f"{len(samples)} train samples have only {len(known)} characters that occur twice; import more texts"
        )
    going_on = [f"##{char}" for char in known if char.isalnum() and not _stands_alone(char)]
    nowhere = Path("train")
    engine = wordpiece([*SPECIAL.values(), *known, *going_on], {}, path=nowhere)
    return subwords.from_engine(engine, max_length=max_length, inputs=INPUTS, source=nowhere)


def _stands_alone(char: str) -> bool:
    """Whether BERT's frame sets it apart: a Chinese character, not a kana or a letter."""
    return unicodedata.name(char, "").startswith("CJK")
