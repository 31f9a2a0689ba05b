"""Sizes of models to pretrain: `small`, which a CPU can train in half an hour, `base`, the papers', or a JSON file.

A file names what differs from `small`; a key that no such model has is refused by name.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from transformers import BertConfig, OpenAIGPTConfig, PreTrainedConfig

from model.architectures.elmo_files import ElmoConfig
from model.architectures.nezha import NezhaConfig
from model.errors import BadInput
from model.files import read_json
from model.tokenization import words
from training.pretrain.options import Decay, Optimizer

SMALLEST = 100  # tokens of a vocabulary: fewer leave nothing to Chinese characters


class Arch(StrEnum):
    """What can be pretrained."""

    ELMO = "elmo"
    GPT = "gpt"
    BERT = "bert"
    NEZHA = "nezha"


class Attention(StrEnum):
    """Of a GPT: full, or with a compressed memory (T-DMCA, Liu 2018)."""

    FULL = "full"
    MEMORY_COMPRESSED = "memory-compressed"


SHORTEST = 8  # tokens or words of a text; special tokens take three of them


def _check(size: Any, **least: int) -> None:
    """Refuse what no model can be built of: a number below its least, a dropout that is no probability."""
    for name, fewest in {"max_length": SHORTEST, **least}.items():
        if getattr(size, name) < fewest:
            raise BadInput(f"{name} is {getattr(size, name)}; it must be at least {fewest}")
    if not 0 <= size.dropout < 1:
        raise BadInput(f"dropout is {size.dropout}; it is a probability, 0 at least and less than 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerSize:
    """vocabulary: tokens. max_length: tokens of a text, and positions that a BERT or GPT has."""

    vocabulary: int = 8_000
    layers: int = 4
    hidden_size: int = 256
    heads: int = 4
    inner_size: int = 1_024
    max_length: int = 128
    dropout: float = 0.1

    def __post_init__(self) -> None:
        _check(self, vocabulary=SMALLEST, layers=1, hidden_size=1, heads=1, inner_size=1)
        if self.hidden_size % self.heads:
            raise BadInput(
                f"hidden_size {self.hidden_size} is no multiple of heads {self.heads}; each head gets a part"
            )

    def config(self, arch: Arch, *, vocabulary: int, pad_id: int, attention: Attention) -> PreTrainedConfig:
        """The configuration of a model with `vocabulary` tokens."""
        if arch is Arch.GPT:
            if self.inner_size != 4 * self.hidden_size:
                raise BadInput(
                    f"inner_size {self.inner_size}: a GPT's is 4 times hidden_size; leave it out or correct it"
                )
            settings: dict[str, Any] = {
                "n_positions": self.max_length,
                "n_embd": self.hidden_size,
                "n_layer": self.layers,
            }
            settings |= {"n_head": self.heads, "vocab_size": vocabulary, "attention": attention.value}
            settings |= dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), self.dropout)
            return OpenAIGPTConfig.from_dict(settings)
        kind = NezhaConfig if arch is Arch.NEZHA else BertConfig
        return kind(
            vocab_size=vocabulary,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=self.inner_size,
            max_position_embeddings=self.max_length,
            hidden_dropout_prob=self.dropout,
            attention_probs_dropout_prob=self.dropout,
            pad_token_id=pad_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ElmoSize:
    """vocabulary: words; characters: that they are spelled with; the others are those of `ElmoConfig`."""

    vocabulary: int = 20_000
    characters: int = 6_000
    max_length: int = 64  # words, as many characters as 100 tokens; an LSTM reads them one after the other
    character_size: int = 64
    filters: tuple[tuple[int, int], ...] = ((1, 32), (2, 64), (3, 96), (4, 64))
    n_highways: int = 2
    projection_size: int = 256
    cell_size: int = 512
    n_layers: int = 2
    dropout: float = 0.1
    softmax: str = "cnn"
    correction_size: int = 32
    sampled_words: int = 4_096

    def __post_init__(self) -> None:
        _check(
            self,
            vocabulary=len(words.SPECIAL_WORDS) + words.FEWEST_WORDS,
            characters=words.FIRST_CHARACTER + 1,
            character_size=1,
            n_highways=0,
            correction_size=1,
            sampled_words=0,
        )
        for each in self.filters:
            if len(each) != 2 or min(each) < 1:
                raise BadInput(f"filters has {list(each)}; each is a width and a number of filters, 1 at least")

    def config(self, *, vocabulary: int, characters: int, word_length: int) -> ElmoConfig:
        """The configuration of a model with the vocabularies that there are."""
        apart = ("vocabulary", "characters", "max_length")
        settings = {name: value for name, value in asdict(self).items() if name not in apart}
        return ElmoConfig(vocabulary_size=vocabulary, n_characters=characters, word_length=word_length, **settings)


Size = TransformerSize | ElmoSize


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How an architecture is trained unless one says otherwise."""

    learning_rate: float
    batch_tokens: int
    optimizer: Optimizer = Optimizer.ADAMW
    decay: Decay = Decay.LINEAR
    whole_words: bool = False
    next_sentence: bool = False


BASE_TRANSFORMER = TransformerSize(
    vocabulary=21_128, layers=12, hidden_size=768, heads=12, inner_size=3_072, max_length=512
)
SIZES: dict[str, dict[Arch, Size]] = {
    "small": {
        Arch.BERT: TransformerSize(),
        Arch.NEZHA: TransformerSize(),
        Arch.GPT: TransformerSize(),
        Arch.ELMO: ElmoSize(),
    },
    "base": {
        Arch.BERT: BASE_TRANSFORMER,
        Arch.NEZHA: BASE_TRANSFORMER,
        Arch.GPT: replace(BASE_TRANSFORMER, vocabulary=40_000),
        Arch.ELMO: ElmoSize(
            vocabulary=200_000,
            characters=16_000,
            max_length=128,
            character_size=16,
            # Widths beyond six would hardly ever meet a Chinese word that long.
            filters=((1, 32), (2, 64), (3, 128), (4, 256), (5, 512), (6, 1_024)),
            projection_size=512,
            cell_size=4_096,
            correction_size=128,
            sampled_words=8_192,
        ),
    },
}


class Pace(NamedTuple):
    """How fast a size is trained."""

    learning_rate: float
    batch_tokens: int


# A model as small as `small` learns faster than those of the papers, and where time is short many small steps teach it
# more than a few large ones; one that is trained already wants less. At twice the rate a small GPT stayed at the
# frequencies of tokens; an LSTM bears it.
PACES = {"small": Pace(5e-4, 2_048), "base": Pace(2e-4, 8_192), "continued": Pace(1e-4, 8_192)}
LSTM_FACTOR = 2.0
LAMB_FACTOR = 5.0  # LAMB's rate is a share of a weight's own size, AdamW's an absolute step


def habits(arch: Arch, config: str, *, start: str | None = None, optimizer: Optimizer | None = None) -> Habits:
    """The defaults of the papers, at learning rates for the size.

    start: the model type of what is trained further. optimizer: the one asked for.
    """
    chosen = optimizer or (Optimizer.LAMB if arch is Arch.NEZHA else Optimizer.ADAMW)
    pace = PACES["continued" if start else config if config in PACES else "small"]
    return Habits(
        batch_tokens=pace.batch_tokens,
        learning_rate=pace.learning_rate
        * (LAMB_FACTOR if chosen is Optimizer.LAMB else 1)
        * (LSTM_FACTOR if arch is Arch.ELMO else 1),
        optimizer=chosen,
        decay=Decay.COSINE if arch is Arch.GPT else Decay.LINEAR,
        whole_words=arch is Arch.NEZHA,
        next_sentence=arch in (Arch.BERT, Arch.NEZHA) and start != "electra",  # Clark 2020
    )


def read_size(arch: Arch, config: str) -> Size:
    """The size that `--config config` stands for.

    Raises:
        BadInput: it is neither a name nor a file, or the file has a key that is unknown, or a value that can't be.
    """
    if config in SIZES:
        return SIZES[config][arch]
    path = Path(config)
    try:
        changes = read_json(path)
    except FileNotFoundError:
        raise BadInput(f"--config {config} is neither {' nor '.join(SIZES)} nor a JSON file; check the name") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"--config {config} can't be read as JSON: {error}") from None
    return changed(SIZES["small"][arch], changes, path)


def changed(size: Size, changes: Any, path: Path) -> Size:
    """`size` with the `changes` that the file `path` names."""
    known = {each.name for each in fields(size)}
    if not isinstance(changes, Mapping):
        raise BadInput(f"{path}: a configuration is a JSON object of {', '.join(sorted(known))}")
    if unknown := sorted(changes.keys() - known):
        raise BadInput(f"{path}: unknown keys {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    for name, value in changes.items():
        now = getattr(size, name)
        wanted = (int, float) if isinstance(now, float) else (list,) if isinstance(now, tuple) else (type(now),)
        pairs = isinstance(value, list) and all(
            isinstance(pair, list) and all(type(number) is int for number in pair) for pair in value
        )
        if not isinstance(value, wanted) or isinstance(value, bool) or (wanted == (list,) and not pairs):
            raise BadInput(f"{path}: {name} is {value!r}; it has to be like {_listed(now)!r}")
    try:
        return replace(size, **{name: _tuples(value) for name, value in changes.items()})
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _listed(value: Any) -> Any:
    """As JSON would have it."""
    return list(map(_listed, value)) if isinstance(value, tuple) else value
