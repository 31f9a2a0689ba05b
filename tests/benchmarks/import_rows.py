"""How fast rows come into a library, and in how much memory.

    python tests/benchmarks/import_rows.py --rows 1000000 [--database URL]

Texts are recombined from a few invented phrases; without --database, a new SQLite file is used.
"""

import argparse
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from app.library.definition import ImportOptions
from app.library.importing import import_files
from app.library.rows import Columns
from app.library.tables import Reading
from app.settings import Settings
from app.store.database import open_database

OPENINGS = ("今天收到货了，", "朋友推荐来的，", "第二次买了，", "出差住了一晚，", "孩子很喜欢，", "看完才写评论：", "")
SUBJECTS = ("房间", "屏幕", "这本书", "包装", "客服", "味道", "电池", "早餐", "快递", "面料", "价格", "位置")
VERDICTS = (
    "比想象的好",
    "有点失望",
    "非常满意！",
    "一般般吧",
    "不会再来了",
    "性价比很高",
    "和图片不一样",
    "值得推荐～",
)
LABELS = ("好评", "中评", "差评")


def write_rows(path: Path, rows: int, *, seed: int = 0) -> None:
    """A CSV of `rows` different short texts."""
    chosen = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        file.write("text,label\n")
        for row in range(rows):
            opening, subject, verdict, label = map(chosen.choice, (OPENINGS, SUBJECTS, VERDICTS, LABELS))
            file.write(f"{opening}{subject}{verdict}，订单{row}也一样,{label}\n")


def main() -> None:
    """Write the rows, import them, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--database")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_rows(home / "rows.csv", options.rows)
        settings = Settings(home=home, **({"database_url": options.database} if options.database else {}))
        with open_database(settings) as engine:
            start = time.perf_counter()
            imported = import_files(
                engine,
                [home / "rows.csv"],
                options=ImportOptions(library=f"benchmark-{time.time_ns()}"),
                columns=Columns(text="text", label="label"),
                reading=Reading(),
                rejects_folder=home / "rejects",
            )
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        speed = f"{imported.read / seconds:,.0f} rows/s"
        sys.stdout.write(f"{imported.added:,} rows in {seconds:.1f} s, {speed}, peak {peak:.0f} MiB\n")


if __name__ == "__main__":
    main()
