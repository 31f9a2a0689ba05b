"""A tiny ELMo with random weights, the tokenizer that it belongs to, and batches of made-up words for it."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from model.architectures.elmo import ElmoLanguageModel
from model.architectures.elmo_files import ElmoConfig
from model.tokenization.words import BEGIN_TEXT, END_TEXT, PADDING, SPECIAL_WORDS, UNKNOWN, WordTokenizer

WORDS = (
    "房间",
    "酒店",
    "早餐",
    "服务员",
    "价格",
    "上次",
    "中午",
    "有时",
    "来时",
    "很",
    "干净",
    "便宜",
    "好",
    "快",
    "吵闹",
    "贵",
    "坏",
    "差",
    "慢",
    "。",
)
CHARACTERS = "房间酒店早餐服务员价格上次中午有时来很干净便宜好快吵闹贵坏差慢。"


def tiny_tokenizer(*, max_length: int = 64) -> WordTokenizer:
    """Knows WORDS, of at most four characters."""
    return WordTokenizer(words=WORDS, characters=CHARACTERS, longest_word=4, max_length=max_length)


def tiny_config(**changes: Any) -> ElmoConfig:
    """Two layers of 12, and filters as wide as a word of two characters and wider."""
    tokenizer = tiny_tokenizer()
    settings = {
        "vocabulary_size": tokenizer.vocabulary_size,
        "n_characters": tokenizer.n_characters,
        "word_length": tokenizer.word_length,
        "character_size": 8,
        "filters": ((1, 6), (3, 6), (5, 4)),
        "n_highways": 2,
        "projection_size": 12,
        "cell_size": 20,
        "correction_size": 4,
        "sampled_words": 30,
    }
    return ElmoConfig(**{**settings, **changes})


def tiny_elmo(*, seed: int = 0, **changes: Any) -> ElmoLanguageModel:
    """In eval mode, its weights large enough that every one shows in what comes out."""
    torch.manual_seed(seed)
    model = ElmoLanguageModel(tiny_config(**changes), torch.from_numpy(tiny_tokenizer().characters_of_words)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embedding" not in name and "bias" not in name:
                weight.mul_(2)
    return model


def tiny_elmo_start(folder: Path) -> Path:
    """What `--init` takes: the language model with its softmax, and its tokenizer, in `folder`."""
    tiny_elmo().save(folder)
    tiny_tokenizer().save(folder)
    return folder


def random_words(
    lengths: tuple[int, ...], *, unknown: float = 0.2, width: int | None = None, seed: int = 0
) -> dict[str, NDArray[np.int64]]:
    """Texts of `lengths` words, ends included, as a padded batch; a share of the words is unknown."""
    tokenizer = tiny_tokenizer()
    random = np.random.default_rng(seed)
    size = (len(lengths), width or max(lengths))
    ids = random.integers(len(SPECIAL_WORDS), tokenizer.vocabulary_size, size)
    ids[random.random(size) < unknown] = UNKNOWN
    places = np.arange(size[1])
    ends = np.array(lengths)[:, None]
    ids = np.where(
        places == 0, BEGIN_TEXT, np.where(places == ends - 1, END_TEXT, np.where(places < ends, ids, PADDING))
    )
    characters = tokenizer.characters_of_words[ids]
    for row, column in np.argwhere(ids == UNKNOWN):
        spelled = "".join(random.choice(list(CHARACTERS + "喵"), random.integers(1, 7)))
        characters[row, column] = tokenizer.encode_words([spelled]).characters[0]
    return {"word_ids": ids, "char_ids": characters, "attention_mask": (places < ends).astype(np.int64)}


def tensors(inputs: dict[str, NDArray[np.int64]]) -> dict[str, torch.Tensor]:
    """The same as torch takes it."""
    return {name: torch.from_numpy(value) for name, value in inputs.items()}
