"""A place to try a library out: files are written, imported and frozen in a line each."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from app.library.definition import ImportOptions
from app.library.history import history
from app.library.importing import Imported, import_files
from app.library.rows import Columns
from app.library.snapshots import Conflicts, Frozen, freeze
from app.library.splits import Splitter
from app.library.tables import Reading
from model.near import NearSettings
from model.types import Sample

OPTIONS = ("task", "label_sep", "level_sep", "names", "simplify", "proposer")
COLUMNS = ("text", "label", "pair", "split", "confidence")


class Workshop:
    """A home folder with its database, and short ways to write, import and freeze."""

    def __init__(self, engine: sa.Engine, home: Path) -> None:
        self.engine, self.home = engine, home
        home.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.home / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def load(self, *paths: Path, library: str = "default", **given: Any) -> Imported:
        columns = {"text": "text", "label": "label"} | {name: given.pop(name) for name in COLUMNS if name in given}
        options = {name: given.pop(name) for name in OPTIONS if name in given}
        return import_files(
            self.engine,
            list(paths),
            options=ImportOptions(library=library, **options),
            columns=Columns(**columns),
            reading=Reading(**given),
            rejects_folder=self.home / "rejects",
        )

    def freeze(
        self, library: str = "default", conflicts: Conflicts = Conflicts.KEEP, near: float = 0.8, **shares: Any
    ) -> Frozen:
        splitter = Splitter(**{"test": 0.1, "dev": 0.1, "seed": 0} | shares)
        folder = self.home / "snapshots"
        return freeze(
            self.engine,
            library=library,
            folder=folder,
            splitter=splitter,
            conflicts=conflicts,
            near=NearSettings(near),
        )

    def samples(self, library: str = "default", **options: Any) -> dict[str, Sample]:
        return {sample.text: sample for sample in self.freeze(library, **options).snapshot.samples()}

    def labels(self, ids: Iterable[str], library: str = "default") -> dict[str, tuple[str, ...]]:
        """The current labels of some samples, none where they have none."""
        found = {sample: history(self.engine, library=library, sample=sample).current for sample in ids}
        return {sample: current.labels if current else () for sample, current in found.items()}

    def count(self, table: sa.Table) -> int:
        with self.engine.connect() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
