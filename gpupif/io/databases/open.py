"""The opening of a query on a database, and the choice of the library that reads it."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from ...errors import InputError
from .address import Address, parse_address
from .base import Database, QueryTable, one_query

AUTO, DUCKDB, ADBC, SQLALCHEMY = "auto", "duckdb", "adbc", "sqlalchemy"
# The Python package that each driver needs. ADBC also needs the driver of the database.
PACKAGES = {DUCKDB: "duckdb", ADBC: "adbc_driver_manager", SQLALCHEMY: "sqlalchemy"}
# The driver of ADBC for a scheme, if it has another name than the scheme.
ADBC_DRIVERS = {"postgres": "postgresql", "grpc": "flightsql"}
# Schemes that "auto" does not read by ADBC: the driver takes the type of a column from the first rows alone.
NOT_BY_ADBC = ("sqlite",)


def open_query(connection: str, query: str, driver: str = AUTO, folder: str | os.PathLike[str] = ".") -> QueryTable:
    """Connect to a database for a query, whose result is a table.

    Close the table after use, or use it as a context manager.

    Parameters
    ----------
    connection:
        The database as a URL. ``duckdb:///people.db`` is a file in `folder`, ``duckdb:////data/people.db`` a file
        anywhere. ``duckdb://`` is no file, for queries such as ``SELECT * FROM read_parquet('people/*.parquet')``.
        Others are ``postgresql://user:password@host:5432/people``, any URL of SQLAlchemy such as
        ``sqlite:///people.db``, and any scheme that has a driver of ADBC.
    query:
        One SELECT, or WITH ... SELECT, VALUES or TABLE. It runs when the columns or rows are first read.
    driver:
        "duckdb", "adbc", "sqlalchemy", or "auto": DuckDB for its own databases, ADBC if a driver for the database is
        installed, as for PostgreSQL, else SQLAlchemy. Default: "auto".
    folder:
        The folder for relative paths: of the file of a database, and of files that a query on DuckDB reads. Default:
        the working directory.

    Returns
    -------
    QueryTable
        The result of the query.

    Raises
    ------
    InputError
        A text that is no URL; a driver that is not installed, or not for this database; a query that is empty, has
        several statements, or does not read.
    TableReadError
        A database that cannot be reached, or that refuses the login.

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
    """Return the driver that reads a database; raises InputError for an unknown driver, or one of other databases."""
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
    # Import only the module of the chosen driver: the libraries of the others need not be installed.
    if driver == DUCKDB:
        from .duckdb_database import DuckDbDatabase

        return DuckDbDatabase(address, folder)
    if driver == ADBC:
        from .adbc_database import AdbcDatabase

        return AdbcDatabase(address, folder, ADBC_DRIVERS.get(address.scheme, address.scheme))
    from .sqlalchemy_database import SqlAlchemyDatabase

    return SqlAlchemyDatabase(address, folder)
