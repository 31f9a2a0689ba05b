"""What `wenlei pretrain` refuses, before hours are spent."""

import re
from pathlib import Path

import pytest
from pretrain_command import command, run, size
from safetensors.torch import load_file, save_file

from app.cli import main


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
