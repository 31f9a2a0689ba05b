"""What every network on a Transformer does alike: frozen, saved, and refused where its head is not whole."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from checkpoints import N_TOKENS, published, save_as_is
from parity import random_inputs, to_tensors
from safetensors.torch import load_file, save_file

from model.architectures.bert import BertClassifier, Pooling
from model.architectures.gpt import GptClassifier, GptMultipleChoice
from model.architectures.heads import TokenClassifier
from model.architectures.on_encoder import OnEncoder
from model.errors import BadInput

NETWORKS: dict[str, tuple[str, Callable[[Path], OnEncoder]]] = {
    "bert": ("bert", lambda start: BertClassifier.start(start, n_labels=2, pooling=Pooling.BILSTM, dropout=0.5)),
    "tokens": ("nezha", lambda start: TokenClassifier.start(start, n_labels=3, dropout=0.5)),
    "gpt": ("gpt2", lambda start: GptClassifier.start(start, n_labels=2, vocabulary_size=N_TOKENS + 2, dropout=0.5)),
    "gpt-choice": ("openai-gpt", lambda start: GptMultipleChoice.start(start, vocabulary_size=N_TOKENS, dropout=0.5)),
}


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest, tmp_path: Path) -> OnEncoder:
    model_type, start = NETWORKS[request.param]
    save_as_is(published(model_type), tmp_path)
    return start(tmp_path)


def states(network: OnEncoder) -> torch.Tensor:
    found: torch.Tensor = network.encoder(**to_tensors(random_inputs(2, 7, n_tokens=N_TOKENS))).last_hidden_state
    return found.detach()


def test_a_frozen_encoder_gives_the_same_features_at_every_step(network: OnEncoder) -> None:
    assert not torch.equal(states(network.train()), states(network)), "dropout, while it learns"
    network.freeze_encoder()
    features = states(network)
    network.train()
    assert network.training
    assert network.get_submodule("dropout").training, "what is on top learns"
    assert torch.equal(states(network), features)
    assert torch.equal(states(network.eval()), features)


def test_the_head_alone_is_in_the_file_of_the_head(network: OnEncoder, tmp_path: Path) -> None:
    network.save(tmp_path)
    on_top = {name for name in network.state_dict() if not name.startswith("encoder.")}
    assert load_file(tmp_path / "head.safetensors").keys() == on_top


def lost(file: Path) -> None:
    file.unlink()


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def with_nan(file: Path) -> None:
    head = load_file(file)
    head["head.weight"][0, 1] = torch.nan
    save_file(head, file)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lost, "has no head.safetensors; copy the whole folder again"),
        (cut_short, r"head\.safetensors can't be read"),
        (with_nan, r"1 of \d+ values of head\.weight are NaN or infinite"),
    ],
)
def test_a_head_that_is_not_whole_is_refused(
    spoil: Callable[[Path], None], message: str, network: OnEncoder, tmp_path: Path
) -> None:
    network.save(tmp_path)
    spoil(tmp_path / "head.safetensors")
    pooling = {"pooling": network.pooling} if isinstance(network, BertClassifier) else {}
    with pytest.raises(BadInput, match=message):
        type(network).load(tmp_path, **pooling)  # type: ignore[attr-defined]
