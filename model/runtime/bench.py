"""Measure a bundle on this machine: latency, throughput and memory of each of its precisions, side by side.

All precisions are run in turn, round after round, in one process, so that whatever else the machine does
slows them alike; figures are medians over the rounds.
"""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from model.bundle import Bundle
from model.console import progress
from model.errors import BadInput
from model.provenance import describe_environment
from model.runtime.base import Classifier, classify
from model.runtime.onnx import OnnxClassifier, load_engine
from model.text import MAX_TEXT_CHARS
from model.tokenization.base import Encoded
from model.types import Text

CHARACTERS = (
    "的一是了我不人在他有这个上们来到时大地为子中你说生国年着就那和要她出也得里后自以会家可下而过天去能对小多然于心学么之都好"
    "看起发当没成只如事把还用第样道想作种开美总从无情己面最女但现前些所同日手又行意动方期它头经长儿回位分爱老因很给名法间知世"
    "什两次使身者被高已亲其进此话常与活正感"
)
TOKENS = 32  # of a made-up text, if the model reads so many
MADE_UP_TEXTS = 64
BATCH = 16  # texts of the throughput figure
WARM_UP_ROUNDS = 5

Call = Callable[[], object]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one precision: milliseconds for one text, texts a second in batches, MiB that loading it took."""

    p50_ms: float
    p99_ms: float
    texts_per_second: float
    memory_mib: float | None
    file_mib: float


@dataclass(frozen=True, slots=True)
class Report:
    """What was measured, and how. `speedup`: precision → how often faster than fp32, as the median of all rounds."""

    bundle: str
    version: str
    tokens: int
    threads: int
    runs: int
    encode_ms: float
    precisions: dict[str, Figures]
    speedup: dict[str, float]
    environment: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The form that the command prints."""
        return asdict(self)


def bench(
    bundle: Bundle,
    *,
    texts: Sequence[Text] | None = None,
    tokens: int | None = None,
    threads: int = 1,
    runs: int = 200,
) -> Report:
    """Measure all precisions of `bundle` on `texts`, or on made-up ones of `tokens` tokens.

    Raises:
        BadInput: the model does not read so many tokens.
        BadText: one of the texts is empty, too long, or not text.
    """
    longest = bundle.manifest.max_length or MAX_TEXT_CHARS
    tokens = min(TOKENS, longest) if tokens is None else tokens
    if not texts and not 3 <= tokens <= longest:
        raise BadInput(f"--tokens {tokens}: the model reads 3 to {longest}")
    load_engine("cpu")  # its own memory is nobody's in particular
    classifiers, memory = {}, {}
    # Small ones first: memory that a large one has given back would hide what a small one takes.
    for precision in sorted(bundle.manifest.onnx, key=lambda precision: bundle.onnx_path(precision).stat().st_size):
        before = _resident_mib()
        classifiers[precision] = OnnxClassifier.load(bundle, precision=precision, threads=threads)
        after = _resident_mib()
        memory[precision] = None if before is None or after is None else round(after - before, 1)
    first = next(iter(classifiers.values()))
    texts = texts or made_up_texts(first, tokens, count=MADE_UP_TEXTS)
    encoded = first.encode(texts)
    encoding = [_seconds(partial(first.encode, [text])) for text in texts]
    by_length = sorted(encoded, key=lambda item: item.length)
    batches = [by_length[at : at + BATCH] for at in range(0, len(by_length), BATCH)]
    with progress("测量 | measuring", runs + len(batches)) as advance:
        single = _run_in_turn(_calls(classifiers, [[item] for item in encoded]), runs, advance)
        batched = _run_in_turn(_calls(classifiers, batches), len(batches), advance)
    return Report(
        bundle=bundle.manifest.name,
        version=bundle.version,
        tokens=round(float(np.median([item.length for item in encoded]))),
        threads=threads,
        runs=runs,
        encode_ms=_ms(encoding, 50),
        precisions={
            precision: Figures(
                p50_ms=_ms(single[precision], 50),
                p99_ms=_ms(single[precision], 99),
                texts_per_second=round(len(encoded) / sum(batched[precision]), 1),
                memory_mib=memory[precision],
                file_mib=round(bundle.onnx_path(precision).stat().st_size / (1 << 20), 1),
            )
            for precision in bundle.manifest.onnx
        },
        speedup={
            precision: round(float(np.median(np.array(single["fp32"]) / np.array(single[precision]))), 2)
            for precision in classifiers
            if "fp32" in classifiers
        },
        environment=describe_environment(),
    )


def made_up_texts(classifier: OnnxClassifier, tokens: int, *, count: int) -> list[Text]:
    """Texts of random common characters, each of about `tokens` tokens."""
    random = np.random.default_rng(0)
    texts = []
    for _ in range(count):
        text = "".join(random.choice(list(CHARACTERS), size=tokens))
        while len(text) > 1 and classifier.encode([Text(text)])[0].length > tokens:
            text = text[:-1]
        texts.append(Text(text))
    return texts


class Pace(NamedTuple):
    """Of one classifier: milliseconds for one text, from the text to its labels; texts a second in batches."""

    p50_ms: float
    p99_ms: float
    texts_per_second: float


def race(classifiers: Mapping[Key, Classifier], texts: Sequence[Text], *, rounds: int) -> dict[Key, Pace]:
    """How fast each of `classifiers` answers `texts`, one after the other and in batches, all of them in turn."""
    batches = [texts[at : at + BATCH] for at in range(0, len(texts), BATCH)]
    with progress("测速 | measuring speed", rounds + len(batches)) as advance:
        single, batched = (
            _run_in_turn(
                {name: [partial(classify, one, part) for part in parts] for name, one in classifiers.items()},
                times,
                advance,
            )
            for parts, times in (([[text] for text in texts], rounds), (batches, len(batches)))
        )
    return {
        name: Pace(
            p50_ms=_ms(single[name], 50),
            p99_ms=_ms(single[name], 99),
            texts_per_second=round(len(texts) / sum(batched[name]), 1),
        )
        for name in classifiers
    }


def _calls(classifiers: Mapping[str, OnnxClassifier], batches: Sequence[Sequence[Encoded]]) -> dict[str, list[Call]]:
    return {name: [partial(classifier.logits, batch) for batch in batches] for name, classifier in classifiers.items()}


def _run_in_turn(
    calls: Mapping[Key, Sequence[Call]], rounds: int, advance: Callable[[float], None]
) -> dict[Key, list[float]]:
    """Seconds of every round for every key of `calls`, after a few rounds that do not count."""
    times: dict[Key, list[float]] = {key: [] for key in calls}
    for number in range(-WARM_UP_ROUNDS, rounds):
        for key, its in calls.items():
            seconds = _seconds(its[number % len(its)])
            if number >= 0:
                times[key].append(seconds)
        if number >= 0:
            advance(1)
    return times


def _seconds(call: Call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _ms(seconds: list[float], percentile: float) -> float:
    return round(float(np.percentile(seconds, percentile)) * 1000, 3)


def _resident_mib() -> float | None:
    """Memory of this process, where the system tells it."""
    try:
        fields = Path("/proc/self/status").read_text().split("VmRSS:")[1].split()
    except (OSError, IndexError):
        return None
    return int(fields[0]) / 1024
