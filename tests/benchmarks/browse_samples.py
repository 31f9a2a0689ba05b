"""How fast the samples of a library are listed and searched, and in how much memory.

    python tests/benchmarks/browse_samples.py --rows 1000000 [--database URL]
    python tests/benchmarks/browse_samples.py --data DIR [--database URL]

Texts are recombined from a few invented phrases and some of 4,000 characters; every other one holds 的, one in 10,000
holds 鹮, and one in 100 comes with two labels. With --data they are those of the *.csv, *.tsv, *.jsonl, *.json and
*.txt below DIR, as near_duplicates.py reads them. Without --database, a new SQLite file is used. Figures are medians of
seven.
"""

import argparse
import csv
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from import_rows import LABELS, OPENINGS, SUBJECTS, VERDICTS
from near_duplicates import real_texts

from app.library.browsing import browse
from app.library.definition import ImportOptions
from app.library.importing import import_files
from app.library.rows import Columns
from app.library.tables import Reading
from app.settings import Settings
from app.store.database import open_database

CHARACTERS = [chr(0x4E00 + 5 * number) for number in range(4_000)]
WEIGHTS = list(accumulate(1 / (rank + 10) for rank in range(4_000)))  # a few are common, as in any text
ROUNDS = 7
SEARCHES = {
    "1 character, common": "的",
    "1 character, rare": "鹮",
    "1 character, none": "龘",
    "2 characters, common": "早餐",
    "2 characters, rare": "号鹮",
    "2 characters, none": "龘龘",
    "3 characters, common": "性价比",
    "3 characters, rare": "单号鹮",
    "3 characters, none": "早餐龘",
    "digits": "1234",
    "punctuation, none": "%_'\"\\",
    "emoji, none": "😀",
}


def main() -> None:
    """Fill a library, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--database")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        texts = real_texts(options.data) if options.data else made_up(options.rows)
        write_rows(home / "rows.csv", texts)
        settings = Settings(home=home, **({"database_url": options.database} if options.database else {}))
        with open_database(settings) as engine:
            library = f"benchmark-{time.time_ns()}"
            start = time.perf_counter()
            imported = import_files(
                engine,
                [home / "rows.csv"],
                options=ImportOptions(library=library),
                columns=Columns(text="text", label="label"),
                reading=Reading(),
                rejects_folder=home / "rejects",
            )
            seconds = time.perf_counter() - start
            say(f"{imported.added:,} samples imported, {imported.read / seconds:,.0f} rows/s")
            settle(engine)
            measure(engine, library, imported.added)
    say(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def made_up(rows: int, *, seed: int = 0) -> Iterator[str]:
    """So many different texts of about 30 characters."""
    chosen = random.Random(seed)
    for row in range(rows):
        opening, subject, verdict = map(chosen.choice, (OPENINGS, SUBJECTS, VERDICTS))
        tail = "".join(chosen.choices(CHARACTERS, cum_weights=WEIGHTS, k=5))
        rare = "鹮" if row % 10_000 == 77 else ""
        yield f"{opening}{subject}{'的' if row % 2 else ''}{verdict}，{row}单号{rare}{tail}"


def write_rows(path: Path, texts: Iterable[str]) -> None:
    """A CSV of the texts, each with a label, one in 100 again with another one."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("text", "label"))
        for row, text in enumerate(texts):
            rows.writerow((text, LABELS[row % len(LABELS)]))
            if row % 100 == 7:
                rows.writerow((text, LABELS[(row + 1) % len(LABELS)]))


def settle(engine: sa.Engine) -> None:
    """PostgreSQL does so by itself, within a minute or two of an import."""
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE catalogue, samples")


def measure(engine: sa.Engine, library: str, samples: int) -> None:
    """Time each kind of page; the first two of a kind bring what they need into the caches."""
    deep = min(10_000, samples // 40)
    place = browse(engine, library=library, page=deep).next
    asked: dict[str, dict[str, Any]] = {"page 1, with the total": {}, f"page {deep:,}": {"page": deep}}
    asked["the last page"] = {"page": -(-samples // 20)}
    asked |= {f"page {deep:,}, {sort}": {"page": deep, "sort": sort} for sort in ("id", "-id", "labels", "-labels")}
    asked |= {f"step, {sort}": {"after": place, "sort": sort} for sort in ("arrival", "id", "labels")}
    asked["label, page 1"] = {"label": LABELS[0]}
    asked[f"label, page {deep // 3:,}"] = {"label": LABELS[0], "page": deep // 3}
    asked[f"label, page {deep // 3:,}, id"] = {"label": LABELS[0], "page": deep // 3, "sort": "id"}
    asked["conflict, page 1"] = {"conflict": True}
    asked["unlabelled"] = {"unlabelled": True}
    for name, query in SEARCHES.items():
        for sort in ("arrival", "-id", "labels"):
            asked[f"search: {name}, {sort}"] = {"query": query, "sort": sort}
    asked["search and label"] = {"query": "单号鹮", "label": LABELS[0]}
    asked["search, step"] = {"query": "鹮", "after": place}
    for name, options in asked.items():
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            page = browse(engine, library=library, **options)
            times.append((time.perf_counter() - start) * 1000)
        total = "" if page.total is None else f", total {'' if page.total_is_exact else '≥ '}{page.total:,}"
        say(f"{name}: {statistics.median(times):.1f} ms, slowest {max(times):.1f}{total}")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
