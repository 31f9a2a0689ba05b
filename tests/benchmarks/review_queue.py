"""How long a reviewer waits in a long review queue: for the next item, for a decision, and for the overview.

    python tests/benchmarks/review_queue.py --rows 1000000 [--database URL]

Every sample of a library of recombined phrases (see browse_samples.py) is queued with a random value, 100,000 of them
first. Then one person claims and decides, and another does who has skipped the 10,000 items that are worth most.
Without --database, a new SQLite file is used. Medians of so many calls as are told; the slowest beside them.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
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
from app.store.reviews import IS_OPEN, Wanted
from app.store.tables import libraries, review_items, samples
from model.run import now

FIRST = 100_000
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
        write_rows(home / "rows.csv", made_up(options.rows))
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
            settle(engine)
            work(engine, library)


def fill(engine: sa.Engine, library: str) -> None:
    """Queue every sample, the first 100,000 by themselves."""
    chosen = random.Random(0)
    with engine.connect() as connection:
        query = sa.select(samples.c.id).join(libraries).where(libraries.c.name == library).order_by(samples.c.id)
        ids = list(connection.scalars(query))
    wanted = [
        Wanted(sample_id, chosen.choice(REASONS), chosen.random(), (chosen.choice(LABELS),), "benchmark", 0.5)
        for sample_id in ids
    ]
    for some in filter(None, (wanted[:FIRST], wanted[FIRST:])):
        start = time.perf_counter()
        queued = queue_reviews(engine, library=library, wanted=some, by="标注员甲")
        say(f"queue {queued.added:,} samples: {time.perf_counter() - start:.1f} s")


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
    times: dict[str, list[float]] = {name: [] for name in ("claim next", "claim next of a reason", *_DECIDE)}
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


def timed(call: Callable[[], object]) -> float:
    """Milliseconds."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def told(name: str, times: list[float]) -> None:
    """A line of figures."""
    say(f"{name}: {statistics.median(times):.1f} ms, slowest {max(times):.1f}, {len(times)} calls")


if __name__ == "__main__":
    main()
