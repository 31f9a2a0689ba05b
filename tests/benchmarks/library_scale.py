"""What everything costs in a library of a given size: seconds, samples a second and peak memory, step by step.

    python tests/benchmarks/library_scale.py --rows 1000000
    python tests/benchmarks/library_scale.py --rows 1000000 --database postgresql://user@host/name
    python tests/benchmarks/library_scale.py --rows 900000 --data DIR

Texts are words of jieba's dictionary in a random order, about 30 characters, one in ten an edited copy of the one
before; with --data they are lines of the files below DIR (see near_duplicates.py). Each step runs in a process of its
own, whose peak memory is told; a PostgreSQL server's is not. Searches are medians of 7.
"""

import argparse
import csv
import multiprocessing
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import jieba
from near_duplicates import COPIES, edited, real_texts

from app.library.browsing import browse
from app.library.definition import ImportOptions
from app.library.diffing import diff_snapshots
from app.library.duplicates import find_duplicates
from app.library.importing import import_files
from app.library.labelling import label_sample
from app.library.recorded import find_snapshot
from app.library.revisions import rename
from app.library.rolling import roll_back
from app.library.rows import Columns
from app.library.snapshots import freeze
from app.library.splits import Splitter
from app.library.tables import Reading
from app.library.taxonomies import change_taxonomy
from app.library.verifying import verify
from app.settings import Settings
from app.store.database import open_database
from model.near import NearSettings

LABELS = ("好评", "中评", "差评", "咨询", "投诉", "建议", "其他")
WORDS = 5000  # the most frequent of the dictionary
REPEATS = 7
PER_PAGE = 20
RELABELLED = 1000


class Place(NamedTuple):
    """Where the library is."""

    home: Path
    database: str | None
    library: str

    def settings(self) -> Settings:
        return Settings(home=self.home, **({"database_url": self.database} if self.database else {}))


def main() -> None:
    """Fill a library, run every step, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--database")
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), options.database, f"scale-{time.time_ns()}")
        texts = list(islice(real_texts(options.data) if options.data else made_up(), options.rows))
        common = "".join(char for char, _ in Counter("".join(texts[:20_000])).most_common(1))
        write_rows(place.home / "rows.csv", texts)
        write_rows(place.home / "more.csv", [f"{text}（补充）" for text in texts[: max(1, len(texts) // 100)]])
        queries = {
            "common, 1 character": common,
            "rare, 1 character": rarest(texts, 1),
            "rare, 2 characters": rarest(texts, 2),
            "rare, 3 characters": rarest(texts, 3),
            "nowhere, 1 character": "龘",
            "nowhere, 2 characters": "龘靐",
        }
        rows = len(texts)
        del texts
        tell("step", "seconds", "samples/s", "peak MiB", "")
        steps: list[tuple[str, Callable[[Place], str], int]] = [
            ("import", partial(load, "rows.csv"), rows),
            ("the same file again", partial(load, "rows.csv"), rows),
            ("near duplicates", duplicates, rows),
            ("snapshot", snapshot, rows),
            ("import 1 % more", partial(load, "more.csv"), rows // 100),
            (f"{RELABELLED} words of a person", relabel, RELABELLED),
            ("snapshot again", snapshot, rows),
            ("diff", diff, rows),
            ("rename a class", rename_class, rows),
            ("verify", check, rows),
            ("roll back", partial(rollback, 0), rows),
            ("undo the rollback", partial(rollback, None), rows),
        ]
        for name, step, count in steps:
            seconds, mebibytes, told = alone(step, place)
            tell(name, f"{seconds:.1f}", f"{count / seconds:,.0f}", f"{mebibytes:.0f}", told)
        tell("reading", "median ms", "", "peak MiB", "")
        readings = {
            "page 1": {},
            "page 10,000 of 20": {"page": min(10_000, rows // PER_PAGE)},
            "page 1, newest first": {"sort": "-arrival"},
            "page 1, by labels": {"sort": "labels"},
            "page 1 of a label": {"label": LABELS[1]},
            "page 1 in conflict": {"conflict": True},
            "page 1 without a label": {"unlabelled": True},
            **{f"search: {name}": {"query": query} for name, query in queries.items()},
            "search: common, of a label": {"query": common, "label": LABELS[1]},
        }
        for name, asked in readings.items():
            _, mebibytes, told = alone(partial(read, asked), place)
            milliseconds, total = told.split(" ", 1)
            tell(name, milliseconds, "", f"{mebibytes:.0f}", total)


def tell(*cells: str) -> None:
    sys.stdout.write("| " + " | ".join(cells) + " |\n")
    sys.stdout.flush()


def alone(step: Callable[[Place], str], place: Place) -> tuple[float, float, str]:
    """Seconds, peak memory in MiB, and what the step tells, of a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(_timed, step, place).result()


def _timed(step: Callable[[Place], str], place: Place) -> tuple[float, float, str]:
    start = time.perf_counter()
    told = step(place)
    return time.perf_counter() - start, peak(), told


def peak() -> float:
    """The peak memory of this process in MiB; getrusage would tell that of its parent, where that is more."""
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmHWM:")[1].split()[0]) / 1024


def load(name: str, place: Place) -> str:
    with open_database(place.settings()) as engine:
        imported = import_files(
            engine,
            [place.home / name],
            options=ImportOptions(library=place.library),
            columns=Columns(text="text", label="label"),
            reading=Reading(),
            rejects_folder=place.home / "rejects",
        )
    return f"added {imported.added:,}"


def duplicates(place: Place) -> str:
    with open_database(place.settings()) as engine:
        found = find_duplicates(engine, library=place.library, settings=NearSettings(), limit=20, members=5)
    return f"{found.groups:,} groups of {found.grouped:,}"


def snapshot(place: Place) -> str:
    with open_database(place.settings()) as engine:
        frozen = freeze(
            engine,
            library=place.library,
            folder=place.home / "snapshots",
            splitter=Splitter(test=0.1, dev=0.1, seed=0),
        ).snapshot
    with (place.home / "frozen.txt").open("a") as file:
        file.write(frozen.hash + "\n")
    return " ".join(f"{split} {frozen.counts[split]:,}" for split in ("train", "dev", "test"))


def frozen(place: Place) -> list[str]:
    return (place.home / "frozen.txt").read_text().split()


def relabel(place: Place) -> str:
    with open_database(place.settings()) as engine:
        page = browse(engine, library=place.library, per_page=500, sort="-arrival")
        for number in range(RELABELLED):
            sample = page.samples[number % len(page.samples)]
            label_sample(engine, library=place.library, sample=sample.id, labels=[LABELS[number % 3]], by="标注员甲")
    return ""


def diff(place: Place) -> str:
    with open_database(place.settings()) as engine:
        found = diff_snapshots(*(find_snapshot(engine, reference) for reference in frozen(place)))
    return " ".join(f"{kind} {count:,}" for kind, count in found.counts.items())


def rename_class(place: Place) -> str:
    with open_database(place.settings()) as engine:
        touched = change_taxonomy(engine, place.library, rename(LABELS[0], "满意"), by="标注员甲")
    return f"{touched.samples:,} samples touched"


def check(place: Place) -> str:
    with open_database(place.settings()) as engine:
        return f"{len(list(verify(engine, library=place.library)))} problems"


def rollback(snapshot: int | None, place: Place) -> str:
    with open_database(place.settings()) as engine:
        reference = None if snapshot is None else frozen(place)[snapshot]
        done = roll_back(engine, place.library, reference, by="标注员甲")
    return f"{done.events:,} events, {done.samples:,} samples"


def read(asked: dict[str, Any], place: Place) -> str:
    """The median of several readings in milliseconds, after one that warms up, and how many samples there are."""
    with open_database(place.settings()) as engine:
        found = browse(engine, library=place.library, per_page=PER_PAGE, **asked)
        times = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            browse(engine, library=place.library, per_page=PER_PAGE, **asked)
            times.append(time.perf_counter() - start)
    total = f"{'' if found.total_is_exact else 'at least '}{found.total:,}"
    return f"{1000 * statistics.median(times):.1f} {total} found"


def made_up(*, seed: int = 0) -> Iterator[str]:
    """Texts of random words without end."""
    jieba.setLogLevel("ERROR")
    jieba.initialize()
    frequencies = {word: count for word, count in jieba.dt.FREQ.items() if count and len(word) > 1}
    words = sorted(frequencies, key=lambda word: (-frequencies[word], word))[:WORDS]
    chosen = random.Random(seed)
    while True:
        text = "".join(chosen.choices(words, k=chosen.randint(8, 18)))
        yield text
        if chosen.random() < COPIES:
            yield edited(text, chosen)


def rarest(texts: list[str], length: int) -> str:
    """A substring of that length, of the last text, that is among the rarest there."""
    last = texts[-1]
    pieces = {last[at : at + length] for at in range(len(last) - length + 1)}
    counts = {piece: sum(piece in text for text in texts[:50_000]) for piece in pieces}
    return min(pieces, key=lambda piece: (counts[piece], piece))


def write_rows(path: Path, texts: list[str], *, seed: int = 0) -> None:
    chosen = random.Random(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "label"))
        writer.writerows((text, chosen.choice(LABELS)) for text in texts)


if __name__ == "__main__":
    main()
