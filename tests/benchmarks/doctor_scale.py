"""What the doctor costs without training in a library of a given size: seconds and peak memory.

    python tests/benchmarks/doctor_scale.py --rows 1000000
    python tests/benchmarks/doctor_scale.py --rows 1000000 --database postgresql://user@host/name

The library is that of library_scale.py: words of jieba's dictionary in a random order, one text in ten an edited copy
of the one before, seven classes by lot; so near duplicates disagree as often as they can. Each step runs in a process
of its own, whose peak memory is told; a PostgreSQL server's is not. On a busy machine, its CPU time is the figure.
"""

import argparse
import sys
import tempfile
import time
from functools import partial
from itertools import islice
from pathlib import Path

from library_scale import Place, alone, duplicates, load, made_up, tell, write_rows

from app.library.doctor.examining import Questions, examine
from app.library.doctor.report import write_report
from app.library.shapes.doctor import examination_shape
from app.store.database import open_database

MOST_MEBIBYTES = 2000


def main() -> None:
    """Fill a library, examine it, print a table; exit with 1 where the doctor takes too much memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--database")
    parser.add_argument("--compare", action="store_true", help="time the search for near duplicates alone, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), options.database, f"doctor-{time.time_ns()}")
        write_rows(place.home / "rows.csv", list(islice(made_up(), options.rows)))
        tell("step", "seconds", "samples/s", "peak MiB", "")
        steps = {"import": partial(load, "rows.csv"), "near duplicates alone": near_alone, "doctor": doctor}
        if not options.compare:
            del steps["near duplicates alone"]
        for name, step in steps.items():
            seconds, mebibytes, told = alone(step, place)
            tell(name, f"{seconds:.1f}", f"{options.rows / seconds:,.0f}", f"{mebibytes:.0f}", told)
    if mebibytes > MOST_MEBIBYTES:
        sys.exit(f"the doctor took {mebibytes:.0f} MiB, more than {MOST_MEBIBYTES}")


def doctor(place: Place) -> str:
    with open_database(place.settings()) as engine:
        found = examine(engine, library=place.library, questions=Questions())
        write_report(examination_shape(found), place.home / "report.html")
    counts = ", ".join(f"{finding.kind} {finding.count:,}" for finding in found.findings)
    return f"{time.process_time():.1f} s of CPU; {counts}"


def near_alone(place: Place) -> str:
    found = duplicates(place)
    return f"{time.process_time():.1f} s of CPU; {found}"


if __name__ == "__main__":
    main()
