"""Label Studio's JSON: a list of tasks, each with its labels as an annotation that is done.

They belong to the control `label` and the object `text` of the project's labelling interface.
https://labelstud.io/guide/tasks#Basic-Label-Studio-JSON-format
"""

from pathlib import Path
from typing import Any

from app.library.exports.content import Content, to_json
from model.types import Sample, Task, Taxonomy


def write_label_studio(content: Content, path: Path) -> None:
    """Labels with levels go to a `Taxonomy` control, all others to `Choices`."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for number, sample in enumerate(content.samples()):
            file.write(("[\n" if not number else ",\n") + to_json(_task(sample, content.taxonomy)))
        file.write("\n]\n")


def _task(sample: Sample, taxonomy: Taxonomy) -> dict[str, Any]:
    pair = {"pair": sample.pair} if sample.pair is not None else {}
    return {
        "data": {"text": sample.text, **pair, "sample_id": sample.id, "split": sample.split.value},
        "annotations": [{"result": [_result(sample, taxonomy)]}],
    }


def _result(sample: Sample, taxonomy: Taxonomy) -> dict[str, Any]:
    place = {"from_name": "label", "to_name": "text"}
    if taxonomy.task is Task.HIERARCHICAL:
        paths = [list(taxonomy.levels(label)) for label in sample.labels]
        return {**place, "type": "taxonomy", "value": {"taxonomy": paths}}
    return {**place, "type": "choices", "value": {"choices": list(sample.labels)}}
