"""`wenlei pretrain`, from text files to a start that can be trained on."""

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from checkpoints import N_TOKENS, published, save_as_is
from rich.console import Console
from safetensors.torch import load_file, save_file
from starts import tiny_start

import model.console as console_module
import training.pretrain.live as live_module
from app.cli import main
from model.architectures.foreign_weights import load_encoder
from model.errors import BadRun
from model.files import read_json
from training.pretrain.loop import Pretraining
from training.pretrain.run import PretrainRun

TINY = {
    "bert": {"vocabulary": 120, "layers": 2, "hidden_size": 32, "heads": 4, "inner_size": 128, "max_length": 48},
    "elmo": {"vocabulary": 60, "characters": 60, "projection_size": 16, "cell_size": 24, "character_size": 8,
             "filters": [[1, 8], [2, 8]], "sampled_words": 20, "correction_size": 4, "max_length": 24},
}  # fmt: skip
TINY |= {"gpt": TINY["bert"], "nezha": TINY["bert"]}
ARCHITECTURES = ("elmo", "gpt", "bert", "nezha")


class Killed(Exception):
    """Stands for a process that ends amid training."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WENLEI_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of one to five paragraphs of reviews."""
    random = np.random.default_rng(3)
    places, times = ("房间", "酒店", "早餐", "服务员", "价格"), ("上次", "中午", "来时", "这年", "有时")
    words = ("很干净", "便宜", "好", "快", "不喜欢", "吵闹", "有点贵", "慢")
    documents = []
    for _ in range(120):
        paragraphs = [
            "".join(f"{random.choice(times)}，{random.choice(places)}{random.choice(words)}。" for _ in range(3))
            for _ in range(int(random.integers(1, 6)))
        ]
        documents.append("\n".join(paragraphs))
    path = tmp_path_factory.mktemp("corpus") / "reviews.txt"
    path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return path


def size(folder: Path, arch: str, **changes: Any) -> Path:
    path = folder / f"{arch}.json"
    path.write_text(json.dumps({**TINY[arch], **changes}))
    return path


def command(arch: str, corpus: Path, out: Path, *more: object) -> list[str]:
    given = ["pretrain", "--arch", arch, "--corpus", corpus, "--batch-tokens", 512, "--precision", "fp32", "--out", out]
    return [str(argument) for argument in (*given, *more)]


def run(*arguments: str, code: int = 0, capsys: pytest.CaptureFixture[str]) -> tuple[Any, str]:
    """What the command prints in JSON, and what it says."""
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--json"])
    printed, told = capsys.readouterr()
    assert ended.value.code == code, told
    return (json.loads(printed) if code == 0 else None), told


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


def test_a_vocabulary_that_does_not_know_the_corpus_is_refused(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"天地玄黄宇宙洪荒日月盈昃辰宿列张，。"])
    )
    asked = command("bert", corpus, tmp_path / "run", "--config", size(tmp_path, "bert"), "--steps", 2)
    _, told = run(*asked, "--vocab", str(vocabulary), code=2, capsys=capsys)
    assert "of the corpus's first tokens are unknown to the vocabulary; take a larger one, or one for texts" in told


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


@pytest.mark.parametrize(
    ("content", "message"), [(None, "vocab.txt is not there"), ("[PAD]\n[UNK]\n[CLS]\n[SEP]\n好", "lacks [MASK]")]
)
def test_a_vocabulary_is_looked_at_before_the_corpus(
    content: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vocabulary = tmp_path / "vocab.txt"
    if content:
        vocabulary.write_text(content, encoding="utf-8")
    asked = command("bert", tmp_path / "no corpus.txt", tmp_path / "run", "--steps", 1, "--vocab", vocabulary)
    _, told = run(*asked, code=2, capsys=capsys)
    assert message in told


@pytest.fixture(scope="module")
def trained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of 48 positions."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.raises(SystemExit):
        main(command("bert", corpus, folder / "run", "--config", size(folder, "bert"), "--steps", "0"))
    return folder / "run"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--arch", "gpt", "--steps", "1", "--init", "{trained}"), "is of type bert, --arch gpt trains openai-gpt"),
        (("--arch", "bert", "--steps", "1", "--init", "{trained}", "--max-length", "64"), "more than the 48 positions"),
        (("--arch", "bert", "--steps", "1", "--init", "{trained}", "--config", "base"), "--config has no meaning with"),
        (("--arch", "bert", "--steps", "1", "--init", "{nan}"), "of bert.embeddings.word_embeddings.weight are NaN"),
        (("--arch", "bert", "--steps", "1", "--vocab", "{vocab}"), "lacks [MASK]"),
        (("--arch", "elmo", "--steps", "1", "--vocab", "{vocab}"), "--vocab has no meaning with --arch elmo"),
        (("--arch", "gpt", "--steps", "1", "--whole-words"), "--whole-words has no meaning with --arch gpt"),
        (("--arch", "bert", "--steps", "1", "--attention", "full"), "--attention has no meaning with --arch bert"),
        (("--arch", "elmo", "--steps", "1", "--checkpoint-activations"), "an LSTM's way back needs"),
        (("--arch", "bert", "--steps", "1", "--config", "huge"), "--config huge is neither small nor base"),
        (("--arch", "bert", "--steps", "1", "--config", "{strange}"), "unknown keys colour; there are dropout, heads"),
        (("--arch", "bert", "--steps", "1", "--config", "{wrong}"), "layers is 'four'; it has to be like 4"),
        (("--arch", "bert", "--steps", "1", "--out", "{wrong}"), "wrong.json is a file; give another --out"),
        (("--arch", "bert",), "ends after --steps or after --minutes"),
        (("--arch", "bert", "--minutes", "nan"), "--minutes nan: give a number of minutes"),
        (("--arch", "bert", "--steps", "1", "--learning-rate", "inf"), "--learning-rate inf: give a number"),
        (("--arch", "bert", "--steps", "1", "--minutes", "1"), "ends after --steps or after --minutes"),
        (("--arch", "word2vec", "--steps", "1"), "--arch word2vec: choose one of elmo, gpt, bert, nezha"),
        (("--arch", "bert", "--steps", "1", "--optimizer", "sgd"), "--optimizer sgd: choose one of adamw, lamb"),
        (("--arch", "bert", "--steps", "1", "--batch-tokens", "64"), "holds no text of --max-length 128"),
    ],
)  # fmt: skip
def test_what_can_not_be_is_refused_before_anything_is_trained(
    arguments: tuple[str, ...],
    message: str,
    corpus: Path,
    trained: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    nan = tmp_path / "nan"
    nan.mkdir()
    for path in (trained / "model").iterdir():
        (nan / path.name).write_bytes(path.read_bytes())
    weights = load_file(nan / "model.safetensors")
    weights["bert.embeddings.word_embeddings.weight"][7, 3] = float("nan")
    save_file(weights, nan / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"房间酒店早餐服务员价格很干净"])
    )
    (tmp_path / "strange.json").write_text('{"layers": 2, "colour": "red"}')
    (tmp_path / "wrong.json").write_text('{"layers": "four"}')
    places = {
        "trained": trained,
        "nan": nan,
        "vocab": tmp_path / "vocab.txt",
        "strange": tmp_path / "strange.json",
        "wrong": tmp_path / "wrong.json",
    }
    given = [argument.format(**places) for argument in arguments]
    _, told = run("pretrain", "--corpus", str(corpus), "--out", str(tmp_path / "run"), *given, code=2, capsys=capsys)
    assert message in told


def test_a_corpus_that_was_refused_may_be_mended(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "mine.txt", tmp_path / "run"
    asked = command("bert", path, out, "--config", size(tmp_path, "bert"), "--steps", 0)
    path.write_bytes(corpus.read_text(encoding="utf-8").encode("gb18030"))
    _, told = run(*asked, code=2, capsys=capsys)
    assert "iconv" in told
    assert not (out / "pretrain.json").exists()
    path.write_bytes(corpus.read_bytes())
    run(*asked, capsys=capsys)
    path.write_bytes(corpus.read_bytes() + "又一段。\n".encode())
    _, told = run(*asked, code=2, capsys=capsys)
    assert re.search(r"another corpus: mine\.txt \(\w{8}, [\w-]+\) there, mine\.txt \(\w{8}, [\w-]+\) now;", told)


def test_a_batch_beyond_the_memory_is_refused(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = command("bert", corpus, tmp_path / "run", "--config", size(tmp_path, "bert"), "--steps", 2)
    asked[asked.index("512")] = str(10**10)
    _, told = run(*asked, code=2, capsys=capsys)
    assert "would fit, and with --accumulate" in told


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
