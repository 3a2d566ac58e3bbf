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


def digests_of(keys: ds.Dataset, rows: Rows) -> pa.Array:
    """Return the digests of rows in a file that `write_keys` wrote. Row numbers have to ascend."""
    if not len(rows):
        return pa.array([], pa.binary(DIGEST_BYTES))
    among = (pc.field(ROW) >= rows[0]) & (pc.field(ROW) <= rows[-1])
    kept = keys.to_table([ROW, KEY], filter=among)
    return kept[KEY].combine_chunks().take(pa.array(np.searchsorted(kept[ROW].to_numpy(), rows)))


def values_of(file: Path, rows: Iterable[int]) -> dict[int, dict[str, Any]]:
    """Return the columns that tell rows apart, as text, for some rows; no columns if their values were not kept."""
    found = ds.dataset(str(file), format="parquet").to_table(filter=pc.field(ROW).isin(list(rows))).drop([KEY])
    return {record.pop(ROW): record for record in found.to_pylist()}
