"""How fast near duplicates are found, and in how much memory.

    python tests/benchmarks/near_duplicates.py --rows 1000000
    python tests/benchmarks/near_duplicates.py --data DIR

Texts are recombined from a few invented phrases, and one in ten comes again with an edit. With --data they are read
from the files below DIR: the longest cell of each row of *.csv and *.tsv, the longest string of each line of *.jsonl
and *.json, each line of *.txt.
"""

import argparse
import csv
import json
import random
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from import_rows import OPENINGS, SUBJECTS, VERDICTS

from model.bigram_sets import bigram_sets
from model.near import NearDuplicates, NearSettings, near_groups
from model.text import skeleton

COPIES = 0.1
CHECKED = 10_000  # copies of which it is told how many were found


def main() -> None:
    """Group the texts, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--threshold", type=float, default=NearSettings().threshold)
    options = parser.parse_args()
    settings = NearSettings(threshold=options.threshold)
    copies: dict[int, tuple[str, str]] = {}
    texts = real_texts(options.data) if options.data else made_up(options.rows, copies)
    start = time.perf_counter()
    found = near_groups(((text, None) for text in texts), settings)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    count = len(found.groups)
    sizes = np.bincount(found.groups)
    exact = int((found.similarities == 1).sum())
    sys.stdout.write(
        f"{count:,} texts in {seconds:.1f} s, {count / seconds:,.0f} texts/s, peak {peak:.0f} MiB; "
        f"{(sizes > 1).sum():,} groups of {sizes[sizes > 1].sum():,} texts, the largest {sizes.max():,}; "
        f"{len(found.pairs):,} pairs, {exact:,} of them with similarity 1\n"
    )
    if copies:
        sys.stdout.write(recall(copies, found, settings) + "\n")


def made_up(rows: int, copies: dict[int, tuple[str, str]], *, seed: int = 0) -> Iterator[str]:
    """So many texts. `copies` learns of edited ones by their position, with what they were made from, one before."""
    chosen = random.Random(seed)
    row = 0
    while row < rows:
        opening, subject, verdict = map(chosen.choice, (OPENINGS, SUBJECTS, VERDICTS))
        text = f"{opening}{subject}{verdict}，订单{row}也一样"
        yield text
        row += 1
        if row < rows and chosen.random() < COPIES:
            copy = edited(text, chosen)
            if len(copies) < CHECKED:
                copies[row] = text, copy
            yield copy
            row += 1


def edited(text: str, chosen: random.Random) -> str:
    """`text` with a character swapped, inserted or deleted, or with a tail."""
    at = chosen.randrange(len(text))
    new = chosen.choice("的了很也都啊呢吧就真")
    return chosen.choice(
        (text[:at] + new + text[at + 1 :], text[:at] + new + text[at:], text[:at] + text[at + 1 :], text + new)
    )


def recall(copies: dict[int, tuple[str, str]], found: NearDuplicates, settings: NearSettings) -> str:
    """How many of the copies that are near what they were made from share its group."""
    near = missed = 0
    for position, texts in copies.items():
        sets = bigram_sets([skeleton(text, None) for text in texts])
        if sets.sizes.all() and sets.similarities(np.array([0]), np.array([1]))[0] >= settings.threshold:
            near += 1
            missed += bool(found.groups[position] != found.groups[position - 1])
    return f"of {near:,} copies that are near, {missed:,} missed ({missed / max(near, 1):.3%})"


def real_texts(folder: Path) -> Iterator[str]:
    """One text a row, object or line of the files below `folder`."""
    for path in sorted(folder.rglob("*")):
        match path.suffix:
            case ".csv" | ".tsv":
                with path.open(encoding="utf-8-sig", newline="") as file:
                    for row in csv.reader(file, delimiter="," if path.suffix == ".csv" else "\t"):
                        yield max(row, key=len, default="")
            case ".jsonl" | ".json":
                for line in path.read_text(encoding="utf-8").splitlines():
                    yield max((value for value in json.loads(line).values() if isinstance(value, str)), key=len)
            case ".txt":
                with path.open(encoding="utf-8") as file:
                    yield from map(str.strip, file)


if __name__ == "__main__":
    main()
