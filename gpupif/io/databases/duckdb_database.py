"""Databases of DuckDB: a file of DuckDB, opened for reading, or no file, for queries on files of other formats."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ...errors import ColumnTypeError
from ...utils.config import resources
from ..temporary_folder import temporary_folder
from .address import Address
from .base import Answer, Database, connecting
from .plain_types import EXPECTED, MEND

ERRORS = (duckdb.Error, pa.ArrowException, OSError)
# The type that Arrow would return without its zone.
ZONED_TIME = "TIME WITH TIME ZONE"


class DuckDbDatabase(Database):
    """A connection to DuckDB, within the memory, threads and temporary files of `gpupif.config`."""

    errors = ERRORS

    def __init__(self, address: Address, folder: Path) -> None:
        file = address.file(folder)
        self._open = contextlib.ExitStack()
        spilled = self._open.enter_context(temporary_folder(resources().temp))
        options = {
            "access_mode": "automatic" if file is None else "read_only",
            "python_enable_replacements": False,
            "temp_directory": str(spilled),
            "memory_limit": f"{resources().memory}B",
            **({} if resources().threads is None else {"threads": resources().threads}),
        }
        with self._open.pop_all() as opened, connecting(address, type(self), ERRORS):
            self._connection = duckdb.connect(str(file or ":memory:"), config=options)
            opened.callback(self._connection.close)
            self._connection.execute("SET file_search_path = ?", [str(folder)])
            self._connection.execute("BEGIN TRANSACTION READ ONLY")
            self._open = opened.pop_all()

    def run(self, query: str, rows: int) -> Answer:
        relation = self._connection.sql(query)
        for name, kind in zip(relation.columns, relation.types, strict=True):
            if str(kind) == ZONED_TIME:
                raise ColumnTypeError(name, f"DuckDB's {ZONED_TIME}", EXPECTED, MEND)
        # Take the names from the relation: if names repeat, the reader has changed names.
        fields = zip(relation.columns, _reader(relation.limit(0), rows).schema.types, strict=True)
        batches = _batches(relation, rows)
        return Answer(pa.schema(list(fields)), batches, batches.close)

    def value(self, query: str) -> Any:
        # Read by Arrow: DuckDB needs a further package to make Python objects of times with a zone.
        return _reader(self._connection.sql(query), 1).read_all().column(0)[0].as_py()

    def close(self) -> None:
        self._open.close()


def _batches(relation: Any, rows: int) -> Generator[pa.RecordBatch, None, None]:
    reader = _reader(relation, rows)
    try:
        yield from reader
    finally:
        reader.close()


def _reader(relation: Any, rows: int) -> pa.RecordBatchReader:
    """Return a reader of the rows of a relation, `rows` rows at a time, as DuckDB makes them."""
    # Before DuckDB 2 the method was named fetch_arrow_reader.
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(rows)
