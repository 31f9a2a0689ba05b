from pathlib import Path

import numpy as np
import pytest
import torch
from bundles import CHARACTERS, character_tokenizer
from made_tasks import chosen, options, write_rows
from starts import tiny_start
from torch.nn import functional
from transformers import GPT2Config, GPT2Model, OpenAIGPTConfig, OpenAIGPTModel

from model.files import read_json, write_json
from model.types import Split
from training.device import NumberFormat
from training.heads.choices import ChoiceRow, ChoiceSet, GptChoice, MultipleChoice, choice_loss
from training.heads.tuning import answer, finetune, is_decoder
from training.pretrained import Start, resolve


def row(text: str, *choices: str, right: int = 0) -> ChoiceRow:
    return ChoiceRow(text, choices, right, {"text": text, "choices": list(choices)})


ROWS = [
    row("房间", "好", "坏"),
    row("早餐", "快", "慢慢慢", "在", "大", right=3),
    row("房间好", "不", "是", "的", right=1),
]


def encode(folder: Path, rows: list[ChoiceRow], *, max_length: int = 32) -> ChoiceSet:
    return MultipleChoice().reader(folder, max_length=max_length, stride=max_length)(rows)


def test_rows_with_different_numbers_of_choices_go_into_one_batch(tiny_bert: Path) -> None:
    dataset = encode(tiny_bert, ROWS)
    inputs = dataset.batch([0, 1, 2])
    assert inputs["input_ids"].shape[:2] == (3, 4)
    assert (inputs["attention_mask"].sum(-1) > 0).all()
    assert dataset.targets([0, 1, 2]).tolist() == [[0, 2], [3, 4], [1, 3]]
    engine = character_tokenizer()
    shown = "".join(engine.id_to_token(token) for token in inputs["input_ids"][1, 1])
    assert shown.startswith("[CLS]早餐[SEP]慢慢慢[SEP]")


def test_a_row_scores_the_same_in_any_company(tiny_bert: Path) -> None:
    task = MultipleChoice()
    network = task.start(tiny_bert, dropout=0.0)
    together = task.answers(network, encode(tiny_bert, ROWS), precision=NumberFormat.FP32)
    for number, each in enumerate(ROWS):
        (alone,) = task.answers(network, encode(tiny_bert, [each]), precision=NumberFormat.FP32)
        assert alone["answer"] == together[number]["answer"]
        assert len(alone["scores"]) == len(each.choices)
        np.testing.assert_allclose(alone["scores"], together[number]["scores"], atol=2e-4)
        assert sum(alone["scores"]) == pytest.approx(1, abs=1e-3)


def test_only_a_rows_own_choices_share_its_probability() -> None:
    scores = torch.tensor([[1.0, 2.0, 99.0], [0.5, -1.0, 3.0]])
    loss = choice_loss(scores, torch.tensor([[1, 2], [2, 3]]))
    alone = [
        functional.cross_entropy(scores[:1, :2], torch.tensor([1])),
        functional.cross_entropy(scores[1:], torch.tensor([2])),
    ]
    torch.testing.assert_close(loss, torch.stack(alone).mean())


def test_texts_that_are_cut_are_counted(tiny_bert: Path) -> None:
    dataset = encode(tiny_bert, [*ROWS, row("好" * 40, "快", "慢")], max_length=16)
    assert dataset.lengths.max() <= 4 * 16
    assert list(MultipleChoice().losses(dataset).values()) == [1]


@pytest.fixture(scope="module", params=["gpt2", "openai-gpt"])
def decoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Start:
    """A tiny decoder that knows the characters of the made-up rows."""
    folder = tiny_start(tmp_path_factory.mktemp(request.param))
    config, model = {"gpt2": (GPT2Config, GPT2Model), "openai-gpt": (OpenAIGPTConfig, OpenAIGPTModel)}[request.param]
    size = character_tokenizer().get_vocab_size()
    settings = {"vocab_size": size, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4}
    torch.manual_seed(3)
    model(config(**settings, bos_token_id=None, eos_token_id=None)).save_pretrained(folder)
    return resolve(str(folder), cache=folder)


def test_decoders_choose_too(decoder: Start, tiny_bert: Path, tmp_path: Path) -> None:
    assert is_decoder(decoder)
    assert not is_decoder(resolve(str(tiny_bert), cache=tmp_path))
    rows = [each for each in chosen(1000, seed=5) if each["text"] == "好不好？"]  # one rule, for few steps
    parts = {Split.TRAIN: rows[:160], Split.DEV: rows[160:220], Split.TEST: rows[220:280]}
    files = {split: write_rows(tmp_path / f"{split}.jsonl", part) for split, part in parts.items()}
    asked = options(decoder.folder, epochs=3)
    run = finetune(GptChoice(lm_weight=0.25), files, start=decoder, options=asked, seed=1, out=tmp_path / "run")
    assert run.figures["test"]["accuracy"] > 0.8  # a guess is right in a third
    assert read_json(run.path / "task.json")["found"] == {"lm_weight": 0.25}
    answered = answer(run.path, files[Split.TEST])
    right = [said["answer"] == gold["answer"] for said, gold in zip(answered, parts[Split.TEST], strict=True)]
    assert np.mean(right) == pytest.approx(run.figures["test"]["accuracy"])


def test_a_decoder_whose_vocabulary_has_no_padding_chooses_too(tmp_path: Path) -> None:
    tokens = ["<unk>", *(f"{character}{end}" for character in dict.fromkeys(CHARACTERS) for end in ("", "</w>"))]
    write_json(tmp_path / "vocab.json", {token: number for number, token in enumerate(tokens)})
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    config = OpenAIGPTConfig(vocab_size=len(tokens), n_positions=64, n_embd=32, n_layer=1, n_head=4)
    OpenAIGPTModel(config).save_pretrained(tmp_path)
    start = resolve(str(tmp_path), cache=tmp_path / "cache")
    files = {split: write_rows(tmp_path / f"{split}.jsonl", chosen(8, seed=1)) for split in (Split.TRAIN, Split.DEV)}
    run = finetune(GptChoice(), files, start=start, options=options(tmp_path, epochs=1), seed=1, out=tmp_path / "run")
    assert len(answer(run.path, files[Split.DEV])) == 8


def test_a_decoders_loss_has_its_language_models_in_it(decoder: Start) -> None:
    dataset = GptChoice().reader(decoder.folder, max_length=32, stride=32)(ROWS)
    inputs = {name: torch.from_numpy(values) for name, values in dataset.batch([0, 1, 2]).items()}
    targets = torch.from_numpy(dataset.targets([0, 1, 2]))
    torch.manual_seed(0)
    network = GptChoice().start(decoder.folder, dropout=0.0).eval()
    none, half, whole = (GptChoice(lm_weight=weight).loss(network, inputs, targets) for weight in (0.0, 0.5, 1.0))
    torch.testing.assert_close(none, choice_loss(network(**inputs), targets))
    assert whole > none
    torch.testing.assert_close(half - none, whole - half)
