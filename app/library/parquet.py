"""Rows out of Parquet files, some thousand at a time, so that a large file takes no more memory than a row group."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.library.readers import Broken, Row
from model.errors import BadInput

MAGIC = b"PAR1"
ROWS_AT_ONCE = 4096
# Of so many rows, once each has its own copy of what they share: a file of 500 bytes can say "the same megabyte" 4096
# times. No texts come near it.
MOST_AT_ONCE = 512 << 20  # bytes
Result = TypeVar("Result")


def parquet_table(file: IO[bytes], *, name: str) -> tuple[tuple[str, ...], Iterator[Row | Broken]]:
    """The names of the columns, and the rows, numbered from 1; a column of lists gives lists.

    Raises:
        BadInput: it is not Parquet, or broken, or cells in it are absurdly large.
    """
    shared = _whole(lambda: _shared_columns(pq.ParquetFile(file)), name)
    parquet = _whole(lambda: pq.ParquetFile(file, read_dictionary=shared), name)
    return tuple(parquet.schema_arrow.names), _rows(parquet, name)


def _rows(parquet: pq.ParquetFile, name: str) -> Iterator[Row | Broken]:
    batches = parquet.iter_batches(ROWS_AT_ONCE)
    done = 0
    while (batch := _whole(lambda: next(batches, None), name)) is not None:
        if _whole(partial(_size_of_all, batch), name) > MOST_AT_ONCE:
            raise BadInput(
                f"{name}: rows {done + 1} to {done + batch.num_rows} hold more than {MOST_AT_ONCE >> 20} MiB; is this "
                "the right file? If so, take the columns with large cells out"
            )
        for number, cells in enumerate(_whole(partial(_cells, batch), name), done + 1):
            yield Row(number, cells)
        done += batch.num_rows


def _cells(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows by column."""
    columns = [column.dictionary_decode() if _is_shared(column) else column for column in batch.columns]  # is faster
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()  # type: ignore[no-any-return]


def _shared_columns(parquet: pq.ParquetFile) -> list[str]:
    """The columns of texts and bytes, which are read as the file has them: what cells share stands once in memory."""
    columns = [parquet.schema.column(number) for number in range(len(parquet.schema))]
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]


def _is_shared(cells: pa.Array) -> bool:
    return bool(pa.types.is_dictionary(cells.type))


def _size_of_all(batch: pa.RecordBatch) -> int:
    return sum(map(_size, batch.columns))


def _size(cells: pa.Array) -> int:
    """The bytes of `cells` when each has its own copy of what they share."""
    kind = cells.type
    if _is_shared(cells):
        return pc.sum(pc.binary_length(cells.dictionary).take(cells.indices)).as_py() or 0
    if pa.types.is_map(kind):
        return _size(cells.keys) + _size(cells.items)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _size(cells.flatten())
    if pa.types.is_struct(kind):
        return sum(map(_size, cells.flatten()))
    return int(cells.nbytes)


def _whole(read: Callable[[], Result], name: str) -> Result:
    try:
        return read()
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(f"{name} is not readable Parquet ({reason}); fetch or write it again") from None
