from pathlib import Path

import pytest
import torch
from checkpoints import ENCODER, ENCODERS, N_TOKENS, published
from parity import random_inputs, spread_weights, to_tensors
from torch import Tensor
from transformers import BertConfig, BertForQuestionAnswering, BertForTokenClassification

from model.architectures.heads import ChoiceClassifier, SpanClassifier, TokenClassifier


def batch(rows: int, length: int) -> dict[str, Tensor]:
    return to_tensors(random_inputs(rows, length, n_tokens=N_TOKENS, with_types=True))


def same(ours: Tensor, expected: Tensor, mask: Tensor) -> None:
    torch.testing.assert_close(ours[mask.bool()], expected[mask.bool()], atol=1e-5, rtol=1e-5)


def test_token_labels_are_those_of_transformers(tmp_path: Path) -> None:
    reference = BertForTokenClassification(BertConfig(**ENCODER, num_labels=5)).eval()
    spread_weights(reference)
    reference.save_pretrained(tmp_path)
    ours = TokenClassifier.start(tmp_path, n_labels=5).eval()
    ours.head.load_state_dict(reference.classifier.state_dict())
    inputs = batch(3, 20)
    same(ours(**inputs), reference(**inputs).logits, inputs["attention_mask"])


def test_spans_are_those_of_transformers_in_the_context_and_nowhere_else(tmp_path: Path) -> None:
    reference = BertForQuestionAnswering(BertConfig(**ENCODER)).eval()
    spread_weights(reference)
    reference.save_pretrained(tmp_path)
    ours = SpanClassifier.start(tmp_path).eval()
    ours.head.load_state_dict(reference.qa_outputs.state_dict())
    inputs = batch(3, 20)
    answerable = inputs["attention_mask"] * (torch.arange(20) >= 6)
    scores, expected = ours(**inputs, answerable=answerable), reference(**inputs)
    same(scores[:, 0], expected.start_logits, answerable)
    same(scores[:, 1], expected.end_logits, answerable)
    assert (scores.transpose(1, 2)[answerable == 0] == -float("inf")).all()
    assert scores.softmax(-1).isfinite().all()


def test_choices_are_scored_one_by_one_by_their_first_token(tmp_path: Path) -> None:
    published("bert").save_pretrained(tmp_path)
    ours = ChoiceClassifier.start(tmp_path).eval()
    inputs = batch(6, 12)
    together = ours(**{name: values.unflatten(0, (2, 3)) for name, values in inputs.items()})
    assert together.shape == (2, 3)
    for number in range(6):
        n_tokens = int(inputs["attention_mask"][number].sum())
        alone = {name: values[number : number + 1, :n_tokens] for name, values in inputs.items()}
        score = ours.head(ours.encoder(**alone).last_hidden_state[:, 0])
        torch.testing.assert_close(together.flatten()[number], score[0, 0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("model_type", ENCODERS)
def test_every_head_stands_on_every_encoder_and_comes_back_as_it_was_saved(model_type: str, tmp_path: Path) -> None:
    published(model_type).save_pretrained(tmp_path / "start")
    inputs = batch(2, 9)
    several = {name: values.unsqueeze(0) for name, values in inputs.items()}
    span_inputs = {**inputs, "answerable": inputs["attention_mask"]}
    for kind, options, given, shape in (
        (TokenClassifier, {"n_labels": 3}, inputs, (2, 9, 3)),
        (SpanClassifier, {}, span_inputs, (2, 2, 9)),
        (ChoiceClassifier, {}, several, (1, 2)),
    ):
        network = kind.start(tmp_path / "start", **options).eval()
        folder = tmp_path / kind.__name__
        folder.mkdir()
        network.save(folder)
        found = kind.load(folder)
        assert not found.training
        assert network(**given).shape == shape
        assert torch.equal(found(**given), network(**given))


def test_a_frozen_encoder_leaves_the_head_to_be_trained(tmp_path: Path) -> None:
    published("bert").save_pretrained(tmp_path)
    network = TokenClassifier.start(tmp_path, n_labels=3)
    network.freeze_encoder()
    assert [name for name, each in network.named_parameters() if each.requires_grad] == ["head.weight", "head.bias"]
