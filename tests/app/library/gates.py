"""A place to try the gate out: a library with labelled samples and a pool, its snapshot, and a model of keywords."""

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from workshop import Workshop

from app.library.gate.running import Applied, Plan, Weighed, apply, prepare, weigh
from app.library.scoring import pool_samples
from app.library.shapes.gate import as_outcome, gate_report
from app.store.tables import review_items
from model.runtime.onnx import OnnxClassifier
from model.selective import Bound
from model.types import Task, Taxonomy
from tests.gating import keyword_bundle

WORDS = {"好评": "好", "差评": "差"}
SINGLE = Taxonomy(Task.SINGLE, ("好评", "差评"))
Rows = Iterable[tuple[str, str]]


class Gate:
    """A library with labelled samples and a pool, a snapshot of it, and a model that goes by keywords."""

    def __init__(self, workshop: Workshop, folder: Path, taxonomy: Taxonomy, words: Mapping[str, str]) -> None:
        self.workshop, self.folder, self.taxonomy, self.words = workshop, folder, taxonomy, words
        self.snapshot = ""

    def labelled(self, rows: Rows, split: str, **options: Any) -> None:
        sheet = io.StringIO()
        csv.writer(sheet).writerows([("text", "label", "split"), *((text, label, split) for text, label in rows)])
        path = self.workshop.write(f"{split}.csv", sheet.getvalue())
        self.workshop.load(path, split="split", task=self.taxonomy.task, **options)

    def pool(self, texts: Iterable[str], name: str = "pool.csv") -> None:
        self.workshop.load(self.workshop.write(name, "text\n" + "\n".join(texts) + "\n"), label=None)

    def freeze(self) -> OnnxClassifier:
        frozen = self.workshop.freeze().snapshot
        self.snapshot = frozen.hash
        bundle = keyword_bundle(
            self.folder / f"bundle-{frozen.hash}", taxonomy=frozen.taxonomy, words=self.words, snapshot=frozen.hash
        )
        return OnnxClassifier.load(bundle)

    def weigh(self, classifier: OnnxClassifier, max_error: float = 0.05, **plan: Any) -> Weighed:
        prepared = prepare(
            self.workshop.engine,
            library="default",
            classifier=classifier,
            trained_on=self.snapshot,
            plan=Plan(Bound(max_error), **plan),
        )
        return weigh(self.workshop.engine, prepared, classifier)

    def apply(self, weighed: Weighed, *, review: bool = True) -> Applied:
        report = gate_report(weighed)
        return apply(
            self.workshop.engine,
            weighed,
            by="标注员甲",
            report=as_outcome(report),
            note=report["guarantee"],
            review=review,
        )

    def left(self) -> set[str]:
        return {sample.text for sample in pool_samples(self.workshop.engine, "default")}

    def queue(self) -> dict[str, Any]:
        with self.workshop.engine.connect() as connection:
            return {row.sample_id: row for row in connection.execute(sa.select(review_items))}
