"""`wenlei pretrain`, from text files to a start that can be trained on."""

import json
from collections import Counter
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from checkpoints import N_TOKENS, published, save_as_is
from pretrain_command import ARCHITECTURES, TINY, command, run, size
from rich.console import Console
from safetensors.torch import load_file
from starts import tiny_start

import model.console as console_module
import training.pretrain.live as live_module
from app.cli import main
from model.architectures.foreign_weights import load_encoder
from model.errors import BadRun
from model.files import read_json
from training.pretrain.loop import Pretraining
from training.pretrain.run import PretrainRun


class Killed(Exception):
    """Stands for a process that ends amid training."""


@pytest.mark.parametrize(
    ("arch", "more"),
    [*((arch, ()) for arch in ARCHITECTURES), ("gpt", ("--attention", "memory-compressed"))],
)
def test_a_start_is_what_was_trained(
    arch: str, more: tuple[str, ...], corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    asked = command(arch, corpus, out, "--config", size(tmp_path, arch), "--steps", 8, *more)
    answer, told = run(*asked, capsys=capsys)
    done = PretrainRun.open(out)
    figure = "bits_per_masked_character" if arch in ("bert", "nezha") else "bits_per_character"
    assert answer["figures"] == done.figures
    assert done.figures["steps"] == 8
    judged = [point["held_out"][figure] for point in done.history if "held_out" in point]
    assert judged[-1] == done.figures[figure] < judged[0]
    assert [point["step"] for point in done.history if "loss" in point] == list(range(1, 9))
    assert f"held-out {figure.replace('_', ' ')}" in told
    assert not done.checkpoint_path.exists()
    drawn = ElementTree.parse(out / "curves.svg").getroot()
    parts = next(point["parts"] for point in done.history if "loss" in point)
    assert len(drawn.findall("{*}polyline")) == 2 + (len(parts) if len(parts) > 1 else 0)
    as_long = ("--max-length", TINY[arch]["max_length"])
    again, _ = run(*command(arch, corpus, tmp_path / "again", "--init", out, "--steps", 0, *as_long), capsys=capsys)
    assert again["figures"][figure] == pytest.approx(done.figures[figure], rel=1e-5)
    started = PretrainRun.open(tmp_path / "again")
    assert started.start is not None
    settings = read_json(started.model_path / "config.json")
    assert (settings.get("attention") == "memory-compressed") == bool(more)
    assert started.tokenizer["sha256"] == done.tokenizer["sha256"]


def test_the_same_command_goes_on_and_another_is_refused(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, config = tmp_path / "run", size(tmp_path, "bert")
    asked = command("bert", corpus, out, "--config", config, "--steps", 8)
    _, told = run(*asked, "--resume", code=2, capsys=capsys)
    assert "holds no pretraining to go on with" in told
    note = Pretraining.note

    def note_until_killed(loop: Pretraining, losses: dict[str, float]) -> None:
        note(loop, losses)
        if loop.progress.step == 5:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Pretraining, "note", note_until_killed)
        with pytest.raises(Killed):
            main(asked)
    capsys.readouterr()
    with pytest.raises(BadRun, match="was broken off; run the same"):
        PretrainRun.open(out)
    _, told = run(*command("bert", corpus, out, "--config", config, "--steps", 9), code=2, capsys=capsys)
    assert "another config: steps 8 there, steps 9 now" in told
    _, told = run(*command("bert", corpus, tmp_path / "other", "--init", out, "--steps", 1), code=2, capsys=capsys)
    assert "the pretraining is not done (running)" in told
    run(*asked, "--resume", capsys=capsys)
    undisturbed, _ = run(
        *command("bert", corpus, tmp_path / "undisturbed", "--config", config, "--steps", 8), capsys=capsys
    )
    assert PretrainRun.open(out).figures["held_out"] == undisturbed["figures"]["held_out"]
    _, told = run(*asked, code=2, capsys=capsys)
    assert f"take it with --init {out}" in told


def test_a_pretraining_goes_on_on_other_texts_from_a_start_without_heads(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = tiny_start(
        tmp_path / "start", characters="上次中午来时这年有，房间酒店早餐服务员价格很干净便宜好快不喜欢吵闹点贵慢。"
    )
    _, told = run(*command("bert", corpus, tmp_path / "run", "--init", start, "--steps", 4), code=2, capsys=capsys)
    assert "the vocabulary lacks [MASK], which --arch bert needs" in told
    assert not (tmp_path / "run" / "pretrain.json").exists()


def test_an_electra_learns_the_words_of_other_texts_and_stays_an_electra(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(corpus.read_text("utf-8").replace("\n", ""))]
    assert len(tokens) <= N_TOKENS
    start = tmp_path / "start"
    save_as_is(published("electra"), start)
    (start / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    out = tmp_path / "run"
    asked = ("--init", start, "--steps", 12, "--max-length", 32, "--learning-rate", 3e-3)
    _, told = run(*command("bert", corpus, out, *asked, "--next-sentence"), code=2, capsys=capsys)
    assert "--next-sentence has no meaning for an electra" in told
    run(*command("bert", corpus, out, *asked), capsys=capsys)
    judged = [point["held_out"]["masked_lm"] for point in PretrainRun.open(out).history if "held_out" in point]
    assert judged[-1] < judged[0] - 0.1
    encoder = load_encoder(out / "model")
    assert encoder.config.model_type == "electra"
    again, _ = run(
        *command("bert", corpus, tmp_path / "again", "--init", out, "--steps", 0, *asked[4:6]), capsys=capsys
    )
    assert again["figures"]["held_out"]["masked_lm"] == pytest.approx(judged[-1], rel=1e-5)


def test_steps_of_0_leave_random_weights_that_the_seed_decides(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = size(tmp_path, "gpt")
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        arguments = ("--config", config, "--steps", 0, "--seed", seed)
        run(*command("gpt", corpus, tmp_path / name, *arguments), capsys=capsys)
    one, same, other = (
        load_file(tmp_path / name / "model" / "model.safetensors")["h.0.attn.c_attn.weight"]
        for name in ("one", "same", "other")
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    held_out = [PretrainRun.open(tmp_path / name).history[0]["held_out"] for name in ("one", "same")]
    assert held_out[0] == held_out[1]


@pytest.mark.parametrize("arch", ["bert", "nezha"])
def test_a_new_masked_language_model_begins_at_the_frequencies_of_the_tokens(
    arch: str, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    run(*command(arch, corpus, out, "--config", size(tmp_path, arch), "--steps", 0), capsys=capsys)
    started = PretrainRun.open(out)
    weights = load_file(started.model_path / "model.safetensors")
    expected = weights["cls.predictions.bias"].double().softmax(0)
    ids = np.concatenate([np.load(path) for path in started.tokens_path.glob("train-*/ids.npy")])
    seen = Counter(ids.tolist())
    shares = [(seen[number] + 1) / (len(ids) + len(expected)) for number in range(len(expected))]
    assert expected.tolist() == pytest.approx(shares, rel=1e-5)


def test_a_gpt_of_compressed_memory_trains_with_little_memory_and_stays_what_it_is(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frugal = ("--checkpoint-activations", "--accumulate", 2, "--steps", 2)
    new = ("--attention", "memory-compressed", "--config", size(tmp_path, "gpt"))
    run(*command("gpt", corpus, tmp_path / "new", *new, *frugal), capsys=capsys)
    run(*command("gpt", corpus, tmp_path / "further", "--init", tmp_path / "new", *frugal), capsys=capsys)
    for name in ("new", "further"):
        assert json.loads((tmp_path / name / "model" / "config.json").read_text())["attention"] == "memory-compressed"
        assert any("compress_key" in weight for weight in load_file(tmp_path / name / "model" / "model.safetensors"))


def test_documents_end_where_one_says_and_files_are_looked_at_once(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text(2 * corpus.read_text(encoding="utf-8").replace("\n\n", "\n"), encoding="utf-8")
    found = {}
    for layout in ("auto", "lines"):
        asked = command("bert", lines, tmp_path / layout, "--config", size(tmp_path, "bert"), "--steps", 0)
        _, told = run(*asked, "--documents", layout, capsys=capsys)
        assert told.count("没有空行") == (layout == "auto")
        found[layout] = read_json(tmp_path / layout / "tokens" / "manifest.json")["survey"]["documents"]
    n_lines = len(lines.read_text(encoding="utf-8").splitlines())
    assert found["lines"] == n_lines > found["auto"]
    _, told = run(*asked, "--documents", "auto", "--resume", code=2, capsys=capsys)
    assert "another corpus: lines.txt" in told


def test_a_terminal_shows_a_bar_and_a_log_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal in (True, False):
        written = StringIO()
        console = Console(file=written, force_terminal=terminal, width=160)
        for module in (live_module, console_module):
            monkeypatch.setattr(module, "messages", console)
        with live_module.live(shown=True) as display:
            assert display is not None
            for step, done in ((1, 0.1), (2, 0.5)):
                display.tell(
                    step=step,
                    done=done,
                    loss=3.25,
                    parts={"masked_lm": 2.5, "next_sentence": 0.75},
                    rate=1e-3,
                    speed=1234.5,
                )
        told = written.getvalue()
        assert "损失 loss 3.250 (masked_lm 2.500, next_sentence 0.750)" in told
        assert "1,234 词元 tokens/s" in told
        assert ("50%" in told) == terminal  # the log's next line is not due yet
