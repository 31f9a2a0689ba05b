"""The census: all samples of a library side by side, as the doctor's examinations read them."""

from dataclasses import dataclass

from app.store.libraries import Library
from model.metrics import BoolArray
from model.near import NearDuplicates
from model.types import IntArray

UNLABELLED = -1


@dataclass(frozen=True, slots=True)
class Census:
    """n samples, sorted by id.

    codes: (n,), the position in `label_lists` of each sample's current labels, or `UNLABELLED`. by_person: (n,), if a
    person's word about it stands. conflict: (n,). imported_splits: (n,), positions in `model.types.Split`, or
    `app.library.splits.UNPROTECTED`. near: their near duplicates.
    """

    library: Library
    ids: list[str]
    label_lists: list[tuple[str, ...]]
    codes: IntArray
    by_person: BoolArray
    conflict: BoolArray
    imported_splits: IntArray
    near: NearDuplicates

    def labels(self, row: int) -> tuple[str, ...] | None:
        """The current labels of sample number `row`, None without any."""
        code = self.codes[row]
        return None if code == UNLABELLED else self.label_lists[code]
