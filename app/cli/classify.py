"""`wenlei classify`: label texts given as arguments or as the lines of a file, in their order."""

import json
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from app.api.schemas import MAX_TOP_K, answer, results
from app.serving.registry import load_classifier
from app.settings import load_settings
from model.bundle import open_bundle
from model.console import JsonFlag, emit, track
from model.errors import BadInput, BadText
from model.runtime.base import Classifier, normal_text
from model.runtime.base import classify as run
from model.text import MAX_TEXT_CHARS, Normaliser
from model.types import Prediction, Text

CHUNK = 256  # lines that a worker takes at a time: enough of like length to fill its batches
STANDARD_INPUT = Path("/dev/stdin")
LONGEST_LINE = 4 * MAX_TEXT_CHARS + 2  # bytes


def classify(
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="要分类的文本 | texts to classify")
    ] = None,
    bundle: Annotated[Path | None, typer.Option(help="模型包目录 | folder of the bundle")] = None,
    file: Annotated[
        Path | None, typer.Option(help="文本文件，每行一条，- 为标准输入 | texts, one a line; - is stdin")
    ] = None,
    top_k: Annotated[int, typer.Option(min=1, max=MAX_TOP_K, help="每条返回的标签数 | labels for each text")] = 1,
    precision: Annotated[
        str | None, typer.Option(help="精度（fp32、int8），默认最小的 | precision, by default the smallest")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Check every text, then load the model, then answer: a bad line leaves no half of an answer behind."""
    settings = load_settings(bundles=bundle and (bundle,), precision=precision)
    if not settings.bundles:
        raise BadInput("no model given; name the folder of a bundle with --bundle")
    if texts and file:
        raise BadInput(f"texts and --file {file} are both given; give one of them")
    if not texts and not file:
        raise BadInput("no texts given; give them as arguments, in a --file, or through a pipe with --file -")
    if file == Path("-"):
        file = STANDARD_INPUT
    opened = open_bundle(settings.bundles[0])
    normaliser = opened.manifest.normaliser
    if file:
        with _checked(read_lines(file, normaliser)) as (lines, total):
            classifier = load_classifier(opened, settings)
            found = classify_lines(classifier, lines, top_k=top_k, workers=settings.workers)
            tracked = track(found, "分类 | classifying", total)
            _write_json(classifier, tracked) if as_json else _write_lines(tracked)
    elif texts:
        inputs = [
            normal_text(Text(text), normaliser, where=f"text {number}") for number, text in enumerate(texts, start=1)
        ]
        classifier = load_classifier(opened, settings)
        predictions = run(classifier, inputs, top_k=top_k)
        emit(
            answer(classifier.name, classifier.version, predictions),
            as_json=as_json,
            render=lambda console: console.print(_table(texts, predictions)),
        )


def read_lines(path: Path, normaliser: Normaliser) -> Iterator[Text]:
    """The lines of `path`, which may be a pipe, normalised, in flat memory.

    Raises:
        BadText: one of them is empty, too long, or not UTF-8; the message gives its number.
        BadInput: there are none.
    """
    number = 0
    with path.open("rb") as stream:
        for number, raw in enumerate(iter(lambda: stream.readline(LONGEST_LINE), b""), start=1):
            where = f"{path} line {number}"
            if len(raw) == LONGEST_LINE:
                raise BadText(f"{where}: the text has more than {MAX_TEXT_CHARS:,} characters; split it into passages")
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise BadText(f"{where}: byte {error.start + 1} is not UTF-8; convert the file to UTF-8") from None
            yield normal_text(Text(line.rstrip("\r\n")), normaliser, where=where)
    if not number:
        raise BadInput(f"{path} holds no texts; write one a line")


def classify_lines(
    classifier: Classifier, lines: Iterator[Text], *, top_k: int, workers: int
) -> Iterator[tuple[Text, Prediction]]:
    """Every line with its prediction, in order; `workers` threads run chunks of lines at a time."""

    def label(chunk: list[Text]) -> list[tuple[Text, Prediction]]:
        return list(zip(chunk, run(classifier, chunk, top_k=top_k), strict=True))

    running: deque[Future[list[tuple[Text, Prediction]]]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        while chunk := list(islice(lines, CHUNK)):
            running.append(pool.submit(label, chunk))
            if len(running) > workers:
                yield from running.popleft().result()
        while running:
            yield from running.popleft().result()


@contextmanager
def _checked(lines: Iterator[Text]) -> Iterator[tuple[Iterator[Text], int]]:
    """`lines` once all of them have been read, and their number; a file keeps them, as they may come from a pipe."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as kept:
        total = 0
        for line in lines:
            kept.write(f"{line.text}\n")  # no normal text holds a line end
            total += 1
        kept.seek(0)
        yield (Text(line.removesuffix("\n")) for line in kept), total


def _write_json(classifier: Classifier, answered: Iterable[tuple[Text, Prediction]]) -> None:
    """One JSON object, written as it comes: a file may hold more lines than memory holds answers."""
    frame = json.dumps(answer(classifier.name, classifier.version, []), ensure_ascii=False)
    sys.stdout.write(frame.removesuffix("]}"))
    for number, (_, prediction) in enumerate(answered):
        separator = ", " if number else ""
        sys.stdout.write(separator + json.dumps(results([prediction])[0], ensure_ascii=False))
    sys.stdout.write("]}\n")


def _write_lines(answered: Iterable[tuple[Text, Prediction]]) -> None:
    """Labels, scores and text, separated by tabs."""
    for line, prediction in answered:
        sys.stdout.write(f"{_labels(prediction, '|')}\t{_scores(prediction, '|')}\t{line.text}\n")


def _table(texts: Sequence[str], predictions: Sequence[Prediction]) -> Table:
    table = Table("文本 | text", "标签 | label", "置信度 | score")
    for text, prediction in zip(texts, predictions, strict=True):
        table.add_row(text, _labels(prediction, "\n"), _scores(prediction, "\n"))
    return table


def _labels(prediction: Prediction, separator: str) -> str:
    return "拒识 | abstained" if prediction.abstained else separator.join(label for label, _ in prediction.labels)


def _scores(prediction: Prediction, separator: str) -> str:
    return separator.join(f"{score:.4f}" for _, score in prediction.labels)
