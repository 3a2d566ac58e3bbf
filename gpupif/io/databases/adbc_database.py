"""Databases that are read by a driver of ADBC, which returns Arrow batches as the database sends rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import adbc_driver_manager
import pyarrow as pa
from adbc_driver_manager import dbapi

from .address import Address, read_only_uri
from .base import Answer, Database, connecting

ERRORS = (adbc_driver_manager.Error, pa.ArrowException, OSError)
# The statement that begins a transaction that only reads, in one state of the database. Other drivers read without a
# transaction.
BEGIN = {"postgresql": "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", "sqlite": ""}
# The text that drivers put before the database's own message.
PREAMBLE = re.compile(r"^(?:[A-Z_]+: )?(?:\[[\w ]+\] )?(?:Failed to connect: )?")
PRIMARY = b"PG_DIAG_MESSAGE_PRIMARY"


class AdbcDatabase(Database):
    """A connection by ADBC: by the Python package of the driver, or by a driver that ADBC's manager knows by name."""

    errors = ERRORS

    def __init__(self, address: Address, folder: Path, driver: str) -> None:
        uri = read_only_uri(address, folder) if driver == "sqlite" else address.url
        with connecting(address, type(self), ERRORS):
            # In autocommit mode there is no transaction.
            autocommit = driver not in BEGIN
            if find_spec(f"adbc_driver_{driver}") is None:
                self._connection = dbapi.connect(driver, uri, autocommit=autocommit)
            else:
                connect = import_module(f"adbc_driver_{driver}.dbapi").connect
                self._connection = connect(uri, autocommit=autocommit)
            try:
                if BEGIN.get(driver):
                    with self._connection.cursor() as cursor:
                        cursor.execute(BEGIN[driver])
            except ERRORS:
                self.close()
                raise

    def run(self, query: str, rows: int) -> Answer:
        cursor = self._connection.cursor()
        try:
            try:
                return Answer(cursor.adbc_execute_schema(query), _batches(cursor, query), cursor.close)
            except adbc_driver_manager.NotSupportedError:
                cursor.execute(query)
                reader = cursor.fetch_record_batch()
                return Answer(reader.schema, iter(reader), cursor.close)
        except ERRORS:
            cursor.close()
            raise

    def value(self, query: str) -> Any:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetch_arrow_table().column(0)[0].as_py()

    def close(self) -> None:
        self._connection.close()

    @staticmethod
    def reason(error: Exception) -> str:
        for key, text in getattr(error, "details", ()):
            if key == PRIMARY:
                return text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        return PREAMBLE.sub("", str(error), count=1)


def _batches(cursor: Any, query: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query, which starts when the first batch is taken."""
    cursor.execute(query)
    yield from cursor.fetch_record_batch()
