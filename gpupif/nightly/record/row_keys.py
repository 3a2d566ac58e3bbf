"""Row keys: digests of the columns that tell rows apart, by which a row is the same from night to night."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ...errors import InputError, TableReadError, reason_of
from ...io.section_file import put_aside
from .state_folder import create_file, state_errors, write_file

# The file of the secret. Without it nobody can try values against digests.
SECRET = "key"
SECRET_BYTES, DIGEST_BYTES = 32, 16
ROW, KEY = "row", "key"
# Rows that are read from a file at once.
READ_ROWS = 1 << 16

Rows = npt.NDArray[np.int64]


def secret_of(folder: Path, say: Callable[[str], None] = lambda _: None) -> bytes:
    """Return the secret of a folder of kept scores; it is drawn on the first call.

    say: called with a sentence if the secret is damaged. Raises OutputError, TableReadError.
    """
    file = folder / SECRET
    try:
        secret = file.read_bytes()
        if len(secret) == SECRET_BYTES:
            return secret
        say(f"{put_aside(file)}. Rows are not the same by their keys as those of runs before.")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise TableReadError(f"{file}: could not be read: {reason_of(error)}.") from error
    secret = secrets.token_bytes(SECRET_BYTES)
    write_file(file, secret)
    return secret


def name_of_secret(secret: bytes) -> str:
    """Return a name of a secret, to see that digests were made with the same secret; it does not reveal the secret."""
    return hashlib.blake2b(secret, digest_size=8, person=b"name").hexdigest()


def row_digests(columns: pa.RecordBatch, secret: bytes) -> pa.Array:
    """Return a digest of each row, the same for equal values only. columns: the columns that tell rows apart."""
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
    """Return the values of a column as text."""
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return column.cast(pa.large_binary())
    return column.cast(pa.large_string()).cast(pa.large_binary())


def _joined(texts: list[pa.Array]) -> pa.Array:
    """Join the texts of each row such that no other texts give the same: each behind its length, "-" for none."""
    parts = []
    for text in texts:
        length = pc.binary_length(text).cast(pa.large_string()).cast(pa.large_binary())
        own = pc.binary_join_element_wise(length, text, pa.scalar(b":", pa.large_binary()))
        parts.append(pc.fill_null(own, b"-"))
    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))


def write_keys(
    file: Path, columns: Iterable[pa.RecordBatch], wanted: npt.NDArray[np.bool_], secret: bytes, values: bool
) -> None:
    """Write which row is which: row number, digest, and with `values` the columns themselves, as text.

    columns: the whole table in order, a chunk at a time. wanted: whether to write each row of the table. Raises
    InputError for columns of another number of rows.
    """
    create_file(file)
    stop, writer = 0, None
    with state_errors(file):
        try:
            for batch in columns:
                start, stop = stop, stop + batch.num_rows
                places = np.flatnonzero(wanted[start:stop])
                chunk = batch.take(pa.array(places))
                shown = {name: chunk.column(name).cast(pa.string()) for name in chunk.schema.names} if values else {}
                table = pa.table({ROW: start + places, KEY: row_digests(chunk, secret), **shown})
                writer = writer or pq.ParquetWriter(file, table.schema, compression="zstd")
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()
    if stop != len(wanted):
        raise InputError(f"row_key: expected its columns of {len(wanted):,} rows, got {stop:,}.")


class RowKeys:
    """The digests in a file that `write_keys` wrote, read in order of the rows; a context manager."""

    def __init__(self, file: Path) -> None:
        self._file = pq.ParquetFile(file)
        self._batches = self._file.iter_batches(READ_ROWS, columns=[ROW, KEY])
        self._rows = np.empty(0, np.int64)
        self._keys = pa.array([], pa.binary(DIGEST_BYTES))

    def __enter__(self) -> RowKeys:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def digests(self, rows: Rows) -> pa.Array:
        """Return the digests of rows. Row numbers have to ascend, from call to call too."""
        if len(rows):
            first = np.searchsorted(self._rows, rows[0])
            chunks = [(self._rows[first:], self._keys.slice(first))]
            while not len(chunks[-1][0]) or chunks[-1][0][-1] < rows[-1]:
                batch = next(self._batches, None)
                if batch is None:
                    break
                chunks.append((batch.column(0).to_numpy(), batch.column(1)))
            self._rows = np.concatenate([numbers for numbers, _ in chunks])
            self._keys = pa.concat_arrays([keys for _, keys in chunks])
        return self._keys.take(pa.array(np.searchsorted(self._rows, rows)))


def values_of(file: Path, rows: Iterable[int]) -> dict[int, dict[str, Any]]:
    """Return the columns that tell rows apart, as text, for some rows; no columns if their values were not kept."""
    found = ds.dataset(str(file), format="parquet").to_table(filter=pc.field(ROW).isin(list(rows))).drop([KEY])
    return {record.pop(ROW): record for record in found.to_pylist()}
