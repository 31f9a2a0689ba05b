"""Sizes of models, those that can't be, and how each is trained unless one says otherwise."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from model.errors import BadInput
from training.pretrain.configs import Arch, Attention, habits, read_size
from training.pretrain.starting import new_objective


@pytest.mark.parametrize(
    ("arch", "changes", "message"),
    [
        ("bert", {"dropout": 2}, "dropout is 2; it is a probability"),
        ("elmo", {"dropout": -0.5}, "dropout is -0.5; it is a probability"),
        ("gpt", {"max_length": 2}, "max_length is 2; it must be at least 8"),
        ("nezha", {"vocabulary": 50}, "vocabulary is 50; it must be at least 100"),
        ("bert", {"heads": 0}, "heads is 0; it must be at least 1"),
        ("elmo", {"characters": 5}, "characters is 5; it must be at least 10"),
        ("elmo", {"vocabulary": 10}, "vocabulary is 10; it must be at least 15"),
        ("elmo", {"n_highways": -1}, "n_highways is -1; it must be at least 0"),
        ("elmo", {"sampled_words": -1}, "sampled_words is -1; it must be at least 0"),
        ("elmo", {"correction_size": 0}, "correction_size is 0; it must be at least 1"),
        ("elmo", {"filters": [["a", 1]]}, "filters is [['a', 1]]; it has to be like [[1, 32], [2, 64]"),
        ("elmo", {"filters": [1, 2]}, "filters is [1, 2]; it has to be like"),
        ("elmo", {"filters": [[1, 0]]}, "filters has [1, 0]; each is a width and a number"),
        ("elmo", {"filters": [[1, 2, 3]]}, "filters has [1, 2, 3]; each is a width and a number"),
    ],
)
def test_a_size_that_can_not_be_is_refused_by_file_and_key(
    arch: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "size.json"
    path.write_text(json.dumps(changes))
    with pytest.raises(BadInput, match=re.escape(f"{path}: {message}")):
        read_size(Arch(arch), str(path))


@pytest.mark.parametrize(("arch", "millions"), [("bert", 103), ("nezha", 103), ("gpt", 116)])
def test_base_has_the_size_of_the_papers(arch: str, millions: int) -> None:
    with torch.device("meta"):
        objective = new_objective(
            Arch(arch), read_size(Arch(arch), "base"), None,
            attention=Attention.FULL, whole_words=False, next_sentence=True,
        )  # fmt: skip
    assert sum(weight.numel() for weight in objective.model.parameters()) / 1e6 == pytest.approx(millions, abs=1)


def test_the_habits_of_the_papers_are_the_defaults() -> None:
    bert, nezha, gpt = (habits(Arch(arch), "small") for arch in ("bert", "nezha", "gpt"))
    assert (bert.optimizer, bert.decay, bert.whole_words, bert.next_sentence) == ("adamw", "linear", False, True)
    assert (nezha.optimizer, nezha.decay, nezha.whole_words, nezha.next_sentence) == ("lamb", "linear", True, True)
    assert (gpt.optimizer, gpt.decay, gpt.whole_words, gpt.next_sentence) == ("adamw", "cosine", False, False)
    further = habits(Arch.BERT, "small", start="bert")
    assert further.next_sentence
    assert not habits(Arch.BERT, "small", start="electra").next_sentence
    assert bert.batch_tokens < further.batch_tokens
    assert further.learning_rate < bert.learning_rate < nezha.learning_rate
