"""Rows out of Parquet files, some thousand at a time, so that a large file takes no more memory than a row group."""

from collections.abc import Callable, Iterator
from typing import IO, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from app.library.readers import Broken, Row
from model.errors import BadInput

MAGIC = b"PAR1"
ROWS_AT_ONCE = 4096
Result = TypeVar("Result")


def parquet_table(file: IO[bytes], *, name: str) -> tuple[tuple[str, ...], Iterator[Row | Broken]]:
    """The names of the columns, and the rows, numbered from 1; a column of lists gives lists.

    Raises:
        BadInput: it is not Parquet, or broken.
    """
    parquet = _whole(lambda: pq.ParquetFile(file), name)
    return tuple(parquet.schema_arrow.names), _rows(parquet, name)


def _rows(parquet: pq.ParquetFile, name: str) -> Iterator[Row | Broken]:
    batches = parquet.iter_batches(ROWS_AT_ONCE)
    done = 0
    while (batch := _whole(lambda: next(batches, None), name)) is not None:
        for number, cells in enumerate(_whole(batch.to_pylist, name), done + 1):
            yield Row(number, cells)
        done += batch.num_rows


def _whole(read: Callable[[], Result], name: str) -> Result:
    try:
        return read()
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(f"{name} is not readable Parquet ({reason}); fetch or write it again") from None
