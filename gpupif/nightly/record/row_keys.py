"""Which row is which from night to night: digests of the columns that tell rows apart."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...errors import InputError, TableReadError, reason_of
from ...io.section_file import put_aside
from .state_folder import create_file, state_errors, write_file

# Where the secret lies without which nobody can try values against digests.
SECRET = "key"
SECRET_BYTES, DIGEST_BYTES = 32, 16
ROW, KEY = "row", "key"
# Rows of a file that are read at once.
READ_ROWS = 1 << 16

Rows = npt.NDArray[np.int64]


def secret_of(folder: Path, say: Callable[[str], None] = lambda _: None) -> bytes:
    """The secret of a folder of kept scores, drawn when it is first asked for.

    say: is told, in a sentence, that it was damaged. Raises OutputError, TableReadError.
    """
    file = folder / SECRET
    try:
        secret = file.read_bytes()
    except FileNotFoundError:
        return _new_secret(file)
    except OSError as error:
        raise TableReadError(f"{file}: could not be read: {reason_of(error)}.") from error
    if len(secret) == SECRET_BYTES:
        return secret
    say(f"{put_aside(file)}. Rows are not the same by their keys as those of runs before.")
    return _new_secret(file)


def _new_secret(file: Path) -> bytes:
    secret = secrets.token_bytes(SECRET_BYTES)
    write_file(file, secret)
    return secret


def name_of_secret(secret: bytes) -> str:
    """By which it is seen that digests were made with the same secret; says nothing of it."""
    return hashlib.blake2b(secret, digest_size=8, person=b"name").hexdigest()


def row_digests(columns: pa.RecordBatch, secret: bytes) -> pa.Array:
    """A digest of each row, the same for equal values only; columns: those that tell rows apart."""
    texts = _joined([_as_text(column) for column in columns.columns])
    edges = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content = memoryview(texts.buffers()[2] or b"")
    made = (
        hashlib.blake2b(content[start:stop], digest_size=DIGEST_BYTES, key=secret).digest()
        for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    )
    buffer = pa.py_buffer(b"".join(made))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(DIGEST_BYTES), len(texts), [None, buffer])


def _as_text(column: pa.Array) -> pa.Array:
    """The values of a column as text."""
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return column.cast(pa.large_binary())
    return column.cast(pa.large_string()).cast(pa.large_binary())


def _joined(texts: list[pa.Array]) -> pa.Array:
    """Several texts of a row as one, which no other texts give: each behind its length, and "-" for none."""
    pieces = []
    for text in texts:
        length = pc.binary_length(text).cast(pa.large_string()).cast(pa.large_binary())
        own = pc.binary_join_element_wise(length, text, pa.scalar(b":", pa.large_binary()))
        pieces.append(pc.fill_null(own, b"-"))
    return pc.binary_join_element_wise(*pieces, pa.scalar(b"", pa.large_binary()))


def write_keys(
    file: Path, columns: Iterable[pa.RecordBatch], rows: int, wanted: Iterator[Rows] | None, secret: bytes, values: bool
) -> None:
    """Write which row is which: its place, its digest, and with `values` the columns themselves, as text.

    columns: of the whole table, some rows at a time. rows: how many it has. wanted: places of the rows that are
    written, ascending, some at a time; None: all. Raises InputError for columns of another number of rows.
    """
    create_file(file)
    written, writer = 0, None
    with state_errors(file):
        try:
            for start, batch, places in _each(columns, wanted):
                found = batch.take(pa.array(places - start))
                shown = {name: found.column(name).cast(pa.string()) for name in found.schema.names} if values else {}
                table = pa.table({ROW: places, KEY: row_digests(found, secret), **shown})
                writer = writer or pq.ParquetWriter(file, table.schema, compression="zstd")
                writer.write_table(table)
                written = start + batch.num_rows
        finally:
            if writer is not None:
                writer.close()
    if written != rows:
        raise InputError(f"row_key: expected its columns of {rows:,} rows, got {written:,}.")


def _each(
    columns: Iterable[pa.RecordBatch], wanted: Iterator[Rows] | None
) -> Iterator[tuple[int, pa.RecordBatch, Rows]]:
    """The batches, each with the place of its first row and those of the rows in it that are wanted."""
    waiting, start = np.empty(0, np.int64), 0
    for batch in columns:
        stop = start + batch.num_rows
        if wanted is None:
            yield start, batch, np.arange(start, stop)
        else:
            waiting = _until(waiting, wanted, stop)
            cut = np.searchsorted(waiting, stop)
            yield start, batch, waiting[:cut]
            waiting = waiting[cut:]
        start = stop


def _until(waiting: Rows, more: Iterator[Rows], stop: int) -> Rows:
    """Ascending places, with more of them until there are all below a limit."""
    parts = [waiting]
    while not len(parts[-1]) or parts[-1][-1] < stop:
        following = next(more, None)
        if following is None:
            break
        parts.append(following)
    return np.unique(np.concatenate(parts))


class RowKeys:
    """The digests in a file of `write_keys`, in order of the rows; a context manager."""

    def __init__(self, file: Path) -> None:
        self._file = pq.ParquetFile(file)
        self._batches = self._file.iter_batches(READ_ROWS, columns=[ROW, KEY])
        self._rows = np.empty(0, np.int64)
        self._keys = pa.array([], pa.binary(DIGEST_BYTES))

    def __enter__(self) -> RowKeys:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def of(self, rows: Rows) -> pa.Array:
        """The digests of rows, which come in ascending order, from call to call too."""
        if len(rows):
            first = np.searchsorted(self._rows, rows[0])
            parts = [(self._rows[first:], self._keys.slice(first))]
            while not len(parts[-1][0]) or parts[-1][0][-1] < rows[-1]:
                batch = next(self._batches, None)
                if batch is None:
                    break
                parts.append((batch.column(0).to_numpy(), batch.column(1)))
            self._rows = np.concatenate([part for part, _ in parts])
            self._keys = pa.concat_arrays([keys for _, keys in parts])
        return self._keys.take(pa.array(np.searchsorted(self._rows, rows)))


def values_of(file: Path, rows: Iterable[int]) -> dict[int, dict[str, Any]]:
    """Of some rows the columns that tell them apart, as text; nothing where their values were not kept."""
    import pyarrow.dataset as ds

    found = ds.dataset(str(file), format="parquet").to_table(filter=pc.field(ROW).isin(list(rows))).to_pylist()
    named = [(one.pop(ROW), one) for one in found]
    return {row: {name: value for name, value in one.items() if name != KEY} for row, one in named}
