"""Formats that are Parquet: one file, or the folder of a Hugging Face data set.

`datasets.load_dataset(FOLDER)` finds the splits and the class names in the head of its README.md.
https://huggingface.co/docs/hub/datasets-manual-configuration
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from app.library.exports.content import Content, to_json
from model.snapshot import ROWS_AT_ONCE
from model.types import Split

HF_SPLITS = {Split.TRAIN: "train", Split.DEV: "validation", Split.TEST: "test"}


def write_parquet(content: Content, path: Path) -> None:
    """One file; the label is a text, or a list of texts where there may be several."""
    label = pa.list_(pa.string()) if content.taxonomy.multiple else pa.string()
    schema = pa.schema([(column, label if column == "label" else pa.string()) for column in content.columns])
    _write_rows(path, (content.record(sample) for sample in content.samples()), schema)


def write_hugging_face(content: Content, path: Path) -> None:
    """A Parquet file for each split that has samples; labels are numbers, which the README gives their names."""
    label = pa.list_(pa.int64()) if content.taxonomy.multiple else pa.int64()
    columns = [column for column in content.columns if column != "split"]
    schema = pa.schema([(column, label if column == "label" else pa.string()) for column in columns])
    positions = {name: index for index, name in enumerate(content.taxonomy.labels)}
    path.mkdir()
    for split in content.counts:
        rows = (
            {
                "id": sample.id,
                "text": sample.text,
                "pair": sample.pair,
                "label": [positions[name] for name in sample.labels]
                if content.taxonomy.multiple
                else positions[sample.labels[0]],
            }
            for sample in content.samples(split)
        )
        _write_rows(path / f"{split}.parquet", rows, schema)
    (path / "README.md").write_text(_readme(content, columns), encoding="utf-8")


def _readme(content: Content, columns: list[str]) -> str:
    features = []
    for column in columns:
        features.append(f"  - name: {column}")
        if column != "label":
            features.append("    dtype: string")
            continue
        kind = "sequence" if content.taxonomy.multiple else "dtype"
        features += [f"    {kind}:", "      class_label:", "        names:"]
        # a JSON string is a YAML string too, whatever is in it
        features += [f"          '{number}': {to_json(name)}" for number, name in enumerate(content.taxonomy.labels)]
    files = [
        line for split in content.counts for line in (f"  - split: {HF_SPLITS[split]}", f"    path: {split}.parquet")
    ]
    return "\n".join(
        [
            "---",
            "task_categories:",
            "- text-classification",
            "language:",
            "- zh",
            "configs:",
            "- config_name: default",
            "  data_files:",
            *files,
            "dataset_info:",
            "  features:",
            *features,
            "---",
            "",
            f"wenlei snapshot `{content.snapshot_hash}`: "
            + ", ".join(f"{HF_SPLITS[split]} {count:,}" for split, count in content.counts.items())
            + f"; task {content.taxonomy.task}, {len(content.taxonomy)} classes.",
            "",
        ]
    )


def _write_rows(path: Path, rows: Iterable[Mapping[str, object]], schema: pa.Schema) -> None:
    rows = iter(rows)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while batch := list(islice(rows, ROWS_AT_ONCE)):
            writer.write_table(pa.Table.from_pylist(batch, schema))
