"""Data sets of the Hugging Face hub, row by row, through the package `datasets` where it is installed."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from app.library.readers import Broken, Row
from model.errors import BadInput, MissingExtra

SPLIT = "split"


class HubSplit(NamedTuple):
    """A split of a data set. `columns` has `split` at the end, unless the data set has such a column itself."""

    name: str
    columns: tuple[str, ...]
    rows: Iterator[Row | Broken]


def hub_splits(identity: str, config: str | None) -> list[HubSplit]:
    """All splits of the data set `identity`; numbers of classes are read as their names.

    Raises:
        MissingExtra: `datasets` is not installed. BadInput: the hub can't be reached, or has no such data set.
    """
    try:
        import datasets  # type: ignore[import-not-found, unused-ignore]  # large, and rarely needed
    except ImportError:
        raise MissingExtra(
            f"--format hf reads {identity} with the package datasets: pip install datasets, or download the data set "
            "and import its files"
        ) from None
    with _told(identity):
        loaded = datasets.load_dataset(identity, config, streaming=True)
    return [_split(identity, str(name), part, datasets.ClassLabel) for name, part in loaded.items()]


def hub_fingerprint(identity: str, config: str | None) -> str:
    """What stands for a file's SHA-256: that of the data set's name; samples themselves are known by their texts."""
    return hashlib.sha256(f"hf {identity} {config or ''}".encode()).hexdigest()


def _split(identity: str, name: str, part: Any, class_label: type) -> HubSplit:
    with _told(identity):
        features = part.features or (part := part._resolve_features()).features
    columns = tuple(features)
    readers = {column: _class_reader(feature, class_label) for column, feature in features.items()}
    extra = {} if SPLIT in columns else {SPLIT: name}

    def rows() -> Iterator[Row | Broken]:
        with _told(identity):
            for number, cells in enumerate(part, 1):
                yield Row(number, {column: readers[column](cell) for column, cell in cells.items()} | extra)

    return HubSplit(name, (*columns, *extra), rows())


def _class_reader(feature: Any, class_label: type) -> Callable[[Any], Any]:
    if isinstance(feature, class_label):
        return lambda cell: None if cell is None or cell < 0 else feature.int2str(cell)  # type: ignore[attr-defined]
    if isinstance(getattr(feature, "feature", None), class_label):
        return lambda cell: [feature.feature.int2str(part) for part in cell]
    return lambda cell: cell


@contextmanager
def _told(identity: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadInput(
            f"data set {identity} can't be read from the hub ({reason}); check its name and the network, or download "
            "it and import its files"
        ) from None
