"""How long a reviewer waits in a long review queue: for the next item, for a decision, and for the overview.

    python tests/benchmarks/review_queue.py --rows 1000000 [--database URL]

A tenth of the samples, of recombined phrases (see browse_samples.py), is imported and queued as people do it, with a
random value from 0.5 to 1; the others, which nobody gets to, are written straight into the tables with less. Then one
person claims and decides, and another does who has skipped the 10,000 items that are worth most. Without --database, a
new SQLite file is used. Medians of so many calls as are told, of the time that passes and of the time that this
process computes; on a machine that is busy otherwise the first says little.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import sqlalchemy as sa
from browse_samples import made_up, say, write_rows
from import_rows import LABELS

from app.library.definition import ImportOptions
from app.library.importing import import_files
from app.library.review.claiming import claim_next
from app.library.review.deciding import accept, change, skip
from app.library.review.overview import list_reviews, review_stats
from app.library.review.queueing import Reason, queue_reviews
from app.library.rows import Columns
from app.library.tables import Reading
from app.settings import Settings
from app.store.database import open_database, writing
from app.store.review_items import SKIP, record_decision
from app.store.reviews import IS_OPEN, Wanted, add_items
from app.store.tables import libraries, review_items, samples
from model.provenance import now
from model.text import sample_id

REAL = 10  # of so many samples one is imported
ROWS_AT_ONCE = 5_000
SKIPPED = 10_000
ROUNDS = 200
REASONS = (Reason.LABEL_ERROR, Reason.HARD, Reason.SUGGESTED)


def main() -> None:
    """Fill a library and its queue, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--database")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        texts = list(made_up(options.rows))
        write_rows(home / "rows.csv", texts[::REAL])
        settings = Settings(home=home, **({"database_url": options.database} if options.database else {}))
        library = f"reviews-{time.time_ns()}"
        with open_database(settings) as engine:
            import_files(
                engine,
                [home / "rows.csv"],
                options=ImportOptions(library=library),
                columns=Columns(text="text", label="label"),
                reading=Reading(),
                rejects_folder=home / "rejects",
            )
            fill(engine, library)
            fill_up(engine, library, texts)
            settle(engine)
            say(f"{list_reviews(engine, library=library, limit=1).total:,} items are open")
            work(engine, library)


def fill(engine: sa.Engine, library: str) -> None:
    """Queue every sample that was imported."""
    chosen = random.Random(0)
    with engine.connect() as connection:
        query = sa.select(samples.c.id).join(libraries).where(libraries.c.name == library).order_by(samples.c.id)
        ids = list(connection.scalars(query))
    wanted = [
        Wanted(sample_id, chosen.choice(REASONS), chosen.uniform(0.5, 1), (chosen.choice(LABELS),), "benchmark", 0.5)
        for sample_id in ids
    ]
    start, computed = time.perf_counter(), time.process_time()
    queued = queue_reviews(engine, library=library, wanted=wanted, by="标注员甲")
    passed, computed = time.perf_counter() - start, time.process_time() - computed
    say(f"queue {queued.added:,} samples: {passed:.1f} s, computing {computed:.1f} s")


def fill_up(engine: sa.Engine, library: str, texts: Sequence[str]) -> None:
    """Queue the other samples, too, which are worth less."""
    chosen = random.Random(1)
    with engine.connect() as connection, writing(connection):
        of = connection.execute(sa.select(libraries.c.id).where(libraries.c.name == library)).scalar_one()
        there = set(connection.scalars(sa.select(samples.c.id).where(samples.c.library_id == of)))
        new = {sample_id(text): text for text in texts}
        for some in batched((each for each in new.items() if each[0] not in there), ROWS_AT_ONCE):
            rows = [
                {"library_id": of, "id": name, "text": text, "duplicate_group": line, "source_id": 1, "line": line}
                for line, (name, text) in enumerate(some)
            ]
            connection.execute(sa.insert(samples), rows)
            wanted = [Wanted(name, chosen.choice(REASONS), chosen.uniform(0, 0.5)) for name, _ in some]
            add_items(connection, of, wanted, by="标注员甲", version=1)


def settle(engine: sa.Engine) -> None:
    """PostgreSQL does so by itself, within a minute or two."""
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE review_items, review_decisions, samples, label_events")


def work(engine: sa.Engine, library: str) -> None:
    """Claim and decide as one person does, then as one who has skipped much."""
    review(engine, library, "标注员甲", "")
    skip_much(engine, library, "标注员乙")
    review(engine, library, "标注员乙", f", after {SKIPPED:,} skips")
    told("list, page 1", [timed(lambda: list_reviews(engine, library=library)) for _ in range(7)])
    told("stats", [timed(lambda: review_stats(engine, library=library)) for _ in range(7)])


def review(engine: sa.Engine, library: str, person: str, when: str) -> None:
    """Claim the next item and decide it, over and over."""
    times: dict[str, list[tuple[float, float]]] = {
        name: [] for name in ("claim next", "claim next of a reason", *_DECIDE)
    }
    for turn in range(ROUNDS):
        reason = None if turn % 2 else Reason.HARD
        name = "claim next of a reason" if reason else "claim next"
        times[name].append(timed(lambda: claim_next(engine, library=library, by=person, reason=reason)))  # noqa: B023
        held = claim_next(engine, library=library, by=person, reason=reason)
        if held is None:
            raise SystemExit("the queue is empty; give more --rows")
        decision = list(_DECIDE)[turn // 2 % len(_DECIDE)]
        times[decision].append(timed(lambda: _DECIDE[decision](engine, held.item.id, person)))  # noqa: B023
    for name, found in times.items():
        told(name + when, found)


_DECIDE: dict[str, Callable[[sa.Engine, int, str], object]] = {
    "accept": lambda engine, item, person: accept(engine, item, by=person),
    "change": lambda engine, item, person: change(engine, item, [LABELS[0]], by=person),
    "skip": lambda engine, item, person: skip(engine, item, by=person),
}


def skip_much(engine: sa.Engine, library: str, person: str) -> None:
    """Have the person skip the items that are worth most."""
    top = (
        sa.select(review_items.c.id)
        .join(libraries, libraries.c.id == review_items.c.library_id)
        .where(libraries.c.name == library, IS_OPEN)
        .order_by(review_items.c.value.desc(), review_items.c.id)
        .limit(SKIPPED)
    )
    with engine.connect() as connection, writing(connection):
        for item in list(connection.scalars(top)):
            record_decision(
                connection,
                item,
                person=person,
                action=SKIP,
                labels=None,
                version=1,
                event=None,
                at=now(),
                note=None,
            )
    settle(engine)


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds that pass, and that this process computes."""
    start, computed = time.perf_counter(), time.process_time()
    call()
    return (time.perf_counter() - start) * 1000, (time.process_time() - computed) * 1000


def told(name: str, times: list[tuple[float, float]]) -> None:
    """A line of figures."""
    passed, computed = ([each[which] for each in times] for which in (0, 1))
    middle = statistics.median
    figures = f"{middle(passed):.1f} ms, computing {middle(computed):.1f}, slowest {max(passed):.1f}"
    say(f"{name}: {figures}, {len(times)} calls")


def batched(items: Iterable[tuple[str, str]], size: int) -> Iterator[list[tuple[str, str]]]:
    """Some at a time."""
    remaining = iter(items)
    while some := list(islice(remaining, size)):
        yield some


if __name__ == "__main__":
    main()
