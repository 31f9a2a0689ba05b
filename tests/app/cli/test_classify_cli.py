import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.api.schemas import ClassifyResponse
from app.cli import classify as module
from app.cli import main
from model import console
from model.bundle import Bundle
from model.runtime.base import classify
from model.runtime.onnx import OnnxClassifier
from model.types import Text
from tests.bundles import tiny_bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return tiny_bundle(tmp_path_factory.mktemp("bundles") / "tiny")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["classify", *arguments])
    captured = capsys.readouterr()
    return int(left.value.code or 0), captured.out, captured.err


def test_the_answer_is_that_of_the_http_server(capsys: pytest.CaptureFixture[str], bundle: Bundle) -> None:
    code, out, _ = run(capsys, "--bundle", str(bundle.path), "房间很干净", "太吵", "--top-k", "2", "--json")
    answer = ClassifyResponse.model_validate_json(out)
    assert (code, answer.model.name, answer.model.version) == (0, "tiny", bundle.version)
    expected = classify(OnnxClassifier.load(bundle), [Text("房间很干净"), Text("太吵")], top_k=2)
    assert [result.label for result in answer.results] == [prediction.label for prediction in expected]
    assert [len(result.labels) for result in answer.results] == [2, 2]


def test_people_get_a_table(capsys: pytest.CaptureFixture[str], bundle: Bundle) -> None:
    code, out, _ = run(capsys, "--bundle", str(bundle.path), "房间很干净")
    assert code == 0
    assert "房间很干净" in out
    assert "评" in out


@pytest.mark.parametrize("text", ["[doge]房间干净", "房间[/b]干净", "[bold]好[/bold]:heart:"])
def test_what_looks_like_markup_is_shown_as_it_was_written(
    capsys: pytest.CaptureFixture[str], bundle: Bundle, text: str
) -> None:
    code, out, _ = run(capsys, "--bundle", str(bundle.path), text)
    assert code == 0
    assert text in out


@pytest.mark.parametrize("workers", ["1", "3"])
def test_a_file_is_answered_line_by_line_in_its_order(
    capsys: pytest.CaptureFixture[str],
    bundle: Bundle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    workers: str,
) -> None:
    monkeypatch.setattr(module, "CHUNK", 7)
    monkeypatch.setattr(console, "LOG_SECONDS", 0.0)
    monkeypatch.setenv("WENLEI_WORKERS", workers)
    lines = ["好坏快慢"[row % 4] * (row % 50 + 1) for row in range(100)]
    file = tmp_path / "texts.txt"
    file.write_text("\ufeff" + "\r\n".join(lines))  # as Windows writes it, without a last line end
    code, out, err = run(capsys, "--bundle", str(bundle.path), "--file", str(file), "--json")
    answer = ClassifyResponse.model_validate_json(out)
    expected = classify(OnnxClassifier.load(bundle), [Text(line) for line in lines])
    assert code == 0
    assert [result.label for result in answer.results] == [prediction.label for prediction in expected]
    assert [result.score for result in answer.results] == pytest.approx(
        [prediction.score for prediction in expected], abs=1e-5
    )
    assert "100/100" in err
    _, out, _ = run(capsys, "--bundle", str(bundle.path), "--file", str(file))
    assert [line.split("\t")[2] for line in out.splitlines()] == lines


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("好\n坏\n\n快\n".encode(), "line 3: the text is empty; leave it out"),
        ("好\n \u200b\n".encode(), "line 2: the text is empty; leave it out"),
        ("好\n这家店\n".encode("gb18030"), "line 1: byte 1 is not UTF-8; convert the file to UTF-8"),
        ("好\n".encode() + "长".encode() * 100_000, "line 2: the text has more than 20,000 characters"),
        ("好\n".encode() + b"a" * 20_001, "line 2: the text has 20,001 characters"),
        (b"", "holds no texts"),
    ],
)
def test_a_line_that_can_not_be_classified_is_named_before_anything_is_written(
    capsys: pytest.CaptureFixture[str], bundle: Bundle, tmp_path: Path, content: bytes, message: str
) -> None:
    file = tmp_path / "texts.txt"
    file.write_bytes(content)
    code, out, err = run(capsys, "--bundle", str(bundle.path), "--file", str(file), "--json")
    assert (code, out) == (2, "")
    assert message in err
    assert str(file) in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bundle", "BUNDLE"], "no texts given"),
        (["--bundle", "BUNDLE", "好", "--file", "x.txt"], "are both given"),
        (["--bundle", "BUNDLE", "好", ""], "text 2: the text is empty"),
        (["--bundle", "BUNDLE", "--file", "/no/such/file"], "/no/such/file: No such file or directory"),
        (["--bundle", "/no/such/bundle", "好"], "/no/such/bundle is not a bundle"),
        (["--bundle", "BUNDLE", "好", "--precision", "int8"], "has no int8 model"),
        (["好"], "name the folder of a bundle with --bundle"),
        (["--bundle", "BUNDLE", "好", "--top-k", "0"], "--top-k"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(
    capsys: pytest.CaptureFixture[str], bundle: Bundle, arguments: list[str], message: str
) -> None:
    given = [str(bundle.path) if argument == "BUNDLE" else argument for argument in arguments]
    code, out, err = run(capsys, *given, "--json")
    assert (code, out) == (2, "")
    assert message in err


def test_json_from_a_file_is_one_object(capsys: pytest.CaptureFixture[str], bundle: Bundle, tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("好\n")
    _, out, _ = run(capsys, "--bundle", str(bundle.path), "--file", str(file), "--json")
    assert set(json.loads(out)) == {"model", "results"}
    assert out.count("\n") == 1


def test_several_labels_of_a_line_stay_on_its_line(
    capsys: pytest.CaptureFixture[str], bundle: Bundle, tmp_path: Path
) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("房间[很]干净\n太吵\n")
    _, out, _ = run(capsys, "--bundle", str(bundle.path), "--file", str(file), "--top-k", "2")
    labels, scores, texts = zip(*(line.split("\t") for line in out.splitlines()), strict=True)
    assert texts == ("房间[很]干净", "太吵")
    assert [sorted(both.split("|")) for both in labels] == [["好评", "差评"]] * 2
    assert [sum(map(float, both.split("|"))) for both in scores] == pytest.approx([1, 1], abs=1e-3)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_lines_may_come_from_a_pipe(capsys: pytest.CaptureFixture[str], bundle: Bundle, options: list[str]) -> None:
    reader, writer = os.pipe()
    os.write(writer, "房间很干净\n太吵\n".encode())
    os.close(writer)
    code, out, _ = run(capsys, "--bundle", str(bundle.path), "--file", f"/dev/fd/{reader}", *options)
    os.close(reader)
    assert code == 0
    answered = json.loads(out)["results"] if options else out.splitlines()
    assert len(answered) == 2


def test_texts_come_through_a_pipe(bundle: Bundle) -> None:
    command = [sys.executable, "-c", "from app.cli import main; main()", "classify", "--bundle", bundle.path]
    done = subprocess.run([*command, "--file", "-", "--json"], input="好\n太吵\n", capture_output=True, text=True)
    assert [result["label"] in ("好评", "差评") for result in json.loads(done.stdout)["results"]] == [True, True]


def test_a_terminal_without_a_character_gets_its_escape(bundle: Bundle) -> None:
    command = [sys.executable, "-c", "from app.cli import main; main()", "classify", "--bundle", bundle.path, "好😀"]
    done = subprocess.run(command, env={**os.environ, "PYTHONIOENCODING": "gbk"}, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "好\\U0001f600".encode("gbk") in done.stdout
