"""A table, and databases that have it."""

from __future__ import annotations

import contextlib
import datetime
import sqlite3
import subprocess
import sys
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa

# Values that differ, and None; of each column some rows have each.
VALUES = {
    "sex": ["f", "m", "it's 100%"],
    "age": [0, 39, 2**40],
    "weight": [0.5, -1.25, 1e300],
    "born": [datetime.date(1970, 1, 1), datetime.date(2024, 2, 29)],
    "seen": [datetime.datetime(2020, 1, 1, 10, 0, 0, 1), datetime.datetime(1969, 12, 31)],
    "zoned": [datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), datetime.datetime(2021, 7, 1, tzinfo=datetime.UTC)],
    "hour": [datetime.time(0), datetime.time(23, 59, 59, 999_999)],
    "paid": [Decimal("1.50"), Decimal("-100.00"), Decimal("99999999.99")],
    "is_owner": [True, False],
    "photo": [b"", b"\x00\xff"],
}
TYPES = {"paid": pa.decimal128(10, 2), "zoned": pa.timestamp("us", "UTC")}
# What SQLite stores of values in Python.
IN_SQLITE = {
    datetime.date: str,
    datetime.datetime: str,
    datetime.time: str,
    Decimal: lambda value: int(value) if value == int(value) else float(value),
    bool: int,
}


def varied_table(rows: int, seed: int = 0) -> pa.Table:
    """Values of every kind, a fifth of them missing; a column of nothing but missing ones."""
    random = np.random.default_rng(seed)
    columns = {"row": pa.array(range(rows))}
    for name, values in VALUES.items():
        picked = random.integers(0, len(values), rows)
        missing = random.random(rows) < 0.2
        given = [None if gone else values[one] for one, gone in zip(picked, missing, strict=True)]
        columns[name] = pa.array(given, TYPES.get(name))
    columns["empty"] = pa.nulls(rows, pa.string())
    return pa.table(columns)


def in_duckdb(table: pa.Table, file) -> str:
    """The URL of a new database that has it as `people`."""
    with duckdb.connect(str(file)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return f"duckdb:///{file}"


def in_sqlite(table: pa.Table, file) -> str:
    """The URL of a new database that has it as `people`, as far as SQLite has its types."""
    stored = [[stored_in_sqlite(value) for value in row.values()] for row in table.to_pylist()]
    with contextlib.closing(sqlite3.connect(file)) as connection:
        names = ", ".join(table.column_names)
        connection.execute(f"CREATE TABLE people ({names})")
        connection.executemany(f"INSERT INTO people VALUES ({', '.join('?' * table.num_columns)})", stored)
        connection.commit()
    return f"sqlite:///{file}"


def stored_in_sqlite(value: object) -> object:
    return IN_SQLITE.get(type(value), lambda same: same)(value)


def values_of(table) -> dict[str, list]:
    """Its values by column, however it is read."""
    return pa.Table.from_batches(table.batches(7), table.schema).to_pydict()


def growth(url, query, rows):
    """Bytes by which a process that reads all rows grows after the first batch."""
    code = f"""
import resource
from gpupif.io.databases.open import choose_driver, open_query
with open_query({url!r}, {query!r}) as table:
    batches = table.batches(1 << 16)
    done, begun = next(batches).num_rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done += sum(batch.num_rows for batch in batches)
    print(done, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begun)
"""
    done, grown = map(
        int, subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    )
    assert done == rows
    return grown << 10
