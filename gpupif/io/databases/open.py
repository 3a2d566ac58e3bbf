"""The way to a database: by which library it is read."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from ...errors import InputError
from .address import Address, parse_address
from .base import Database, QueryTable, one_query

AUTO, DUCKDB, ADBC, SQLALCHEMY = "auto", "duckdb", "adbc", "sqlalchemy"
# What each needs, beside the driver of ADBC.
PACKAGES = {DUCKDB: "duckdb", ADBC: "adbc_driver_manager", SQLALCHEMY: "sqlalchemy"}
# The driver of ADBC for a scheme, where it has another name.
ADBC_DRIVERS = {"postgres": "postgresql", "grpc": "flightsql"}
# ADBC's driver tells types of columns by the first rows alone.
NOT_BY_ADBC = ("sqlite",)


def open_query(connection: str, query: str, driver: str = AUTO, folder: str | os.PathLike[str] = ".") -> QueryTable:
    """Connect to a database for a query, whose result is a table; to be closed, or used as a context manager.

    Parameters
    ----------
    connection:
        The database as a URL. ``duckdb:///people.db`` (a file below `folder`; ``duckdb:////data/people.db``: of any
        place) or ``duckdb://`` (none: for queries such as ``SELECT * FROM read_parquet('people/*.parquet')``);
        ``postgresql://user:password@host:5432/people``; any URL of SQLAlchemy, ``sqlite:///people.db``; any scheme
        that there is a driver of ADBC for.
    query:
        One SELECT, or WITH ... SELECT, VALUES, TABLE; it is not run before something is asked of it.
    driver:
        "duckdb", "adbc", "sqlalchemy", or "auto": DuckDB for its own, ADBC for what a driver of it is installed for,
        as PostgreSQL, else SQLAlchemy.
    folder:
        Where relative paths begin: that of a database's file, and those of files that a query on DuckDB reads.

    Raises
    ------
    InputError
        A URL that is none, a driver that is not installed or not for this database, a query that is none, several, or
        does not begin as one that reads.
    TableReadError
        A database that cannot be reached, or does not let us in.

    Examples
    --------
    >>> with open_query("duckdb://", "SELECT 'f' AS sex, 39 AS age") as table:
    ...     table.names, [batch.num_rows for batch in table.batches(1_000)]
    (['sex', 'age'], [1])

    """
    query = one_query(query)
    address = parse_address(connection)
    chosen = choose_driver(driver, address)
    if find_spec(PACKAGES[chosen]) is None:
        raise InputError(
            f"driver: {chosen!r}, for {address.name}, needs the Python package {PACKAGES[chosen]!r}, which is not "
            f"installed: pip install 'gpupif[{chosen}]'."
        )
    return QueryTable(_connect(chosen, address, Path(folder)), address, query)


def choose_driver(driver: str, address: Address) -> str:
    """What reads a database. Raises InputError for a driver that there is not, or that is not for it."""
    if driver not in (AUTO, *PACKAGES):
        raise InputError(f"driver: expected one of {', '.join((AUTO, *PACKAGES))}, got {driver!r}.")
    if driver == AUTO:
        if address.scheme == DUCKDB:
            return DUCKDB
        adbc = not address.adapter and address.scheme not in NOT_BY_ADBC and find_spec(_adbc_package(address))
        return ADBC if adbc or find_spec(SQLALCHEMY) is None else SQLALCHEMY
    if (driver == DUCKDB) != (address.scheme == DUCKDB):
        raise InputError(f"driver: {driver!r} does not read {address.name}. Leave it out, or write driver='auto'.")
    return driver


def _adbc_package(address: Address) -> str:
    return f"adbc_driver_{ADBC_DRIVERS.get(address.scheme, address.scheme)}"


def _connect(driver: str, address: Address, folder: Path) -> Database:
    # What a library is not asked for need not be installed.
    if driver == DUCKDB:
        from .duckdb_database import DuckDbDatabase

        return DuckDbDatabase(address, folder)
    if driver == ADBC:
        from .adbc_database import AdbcDatabase

        return AdbcDatabase(address, folder, ADBC_DRIVERS.get(address.scheme, address.scheme))
    from .sqlalchemy_database import SqlAlchemyDatabase

    return SqlAlchemyDatabase(address, folder)
