"""Databases that SQLAlchemy reaches, whose rows become Arrow batches here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError

from ...errors import InputError, TableReadError
from .address import Address
from .base import Answer, Database, connecting
from .python_values import ColumnKind, arrow_column, find_kind, sqlite_kind
from .statement import relation, standard_quote

# What begins a transaction that only reads and sees one state of the database; others keep to their defaults.
BEGIN = {
    "postgresql": "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "sqlite": "BEGIN",
    "mysql": "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    "mariadb": "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    "oracle": "SET TRANSACTION READ ONLY",
}
# What dialects of SQLAlchemy are called where URLs say something else.
DIALECTS = {"postgres": "postgresql"}
# Values that are Python objects at once.
MOST_CELLS = 1 << 20
# Stands for % where names are quoted, which libraries that take parameters by it would see twice.
PERCENT = "\ufffc"


class SqlAlchemyDatabase(Database):
    """A connection by SQLAlchemy, of any dialect whose library is installed."""

    def __init__(self, address: Address, folder: Path) -> None:
        engine = _engine(address, folder)
        self.errors = (SQLAlchemyError, engine.dialect.loaded_dbapi.Error, pa.ArrowException, OSError)
        self._dialect = engine.dialect
        with connecting(address, type(self), self.errors):
            self._connection = engine.connect()
            try:
                begin = BEGIN.get(engine.dialect.name)
                if begin:
                    self._execute(begin)
            except self.errors:
                self.close()
                raise

    def run(self, query: str, rows: int) -> Answer:
        result = self._execute(query, rows)
        names = [column[0] for column in result.cursor.description]
        declared = [(column[4], column[5]) for column in result.cursor.description]
        few = max(1, min(rows, MOST_CELLS // max(1, len(names))))
        first = result.fetchmany(few)
        if self._dialect.name == "sqlite" and len(set(names)) == len(names):
            kinds = self._sqlite_kinds(query, names)
        else:
            columns = list(zip(*first, strict=True)) if first else [()] * len(names)
            kinds = [find_kind(*column) for column in zip(names, columns, declared, strict=True)]
            unknown = [place for place, kind in enumerate(kinds) if kind.is_unknown]
            if unknown and first:
                # Some libraries have one result at a time.
                result.close()
                for place in unknown:
                    value = self._some_value(query, names[place])
                    kinds[place] = find_kind(names[place], [value], declared[place])
                result = self._execute(query, rows)
                first = result.fetchmany(few)
        schema = pa.schema([pa.field(name, kind.type) for name, kind in zip(names, kinds, strict=True)])
        return Answer(schema, _batches(result, first, few, kinds, schema))

    def value(self, query: str) -> Any:
        with contextlib.closing(self._execute(query)) as result:
            row = result.fetchone()
            return None if row is None else row[0]

    def close(self) -> None:
        self._connection.close()

    def quote(self, name: str) -> str:
        quoted: str = self._dialect.identifier_preparer.quote(name.replace("%", PERCENT))
        return quoted.replace(PERCENT, "%")

    @staticmethod
    def reason(error: Exception) -> str:
        # What SQLAlchemy says itself has the statement in it.
        error = getattr(error, "orig", None) or error
        last = error.args[-1] if error.args else ""
        return last if isinstance(last, str) and last else str(error)

    def _execute(self, query: str, rows: int | None = None) -> Any:
        """The result of a statement as it is, a % in it too; rows: to be fetched at once, as they are found."""
        options = {"no_parameters": True} if rows is None else {"no_parameters": True, "yield_per": rows}
        return self._connection.exec_driver_sql(query, execution_options=options)

    def _some_value(self, query: str, name: str) -> Any:
        """A value of a column of a query's result, None where all are missing."""
        column = f"gpupif_rows.{self.quote(name)}"
        statement = f"SELECT {column} FROM {relation(query)} WHERE {column} IS NOT NULL"
        with contextlib.closing(self._execute(statement, 1)) as result:
            row = result.fetchone()
            return None if row is None else row[0]

    def _sqlite_kinds(self, query: str, names: Sequence[str]) -> list[ColumnKind]:
        """The kinds of columns of SQLite, where each value may be of another type."""
        found = ", ".join(f"group_concat(DISTINCT typeof(gpupif_rows.{standard_quote(name)}))" for name in names)
        with contextlib.closing(self._execute(f"SELECT {found} FROM {relation(query)}")) as result:
            return [
                sqlite_kind(name, (types or "").split(","))
                for name, types in zip(names, result.fetchone(), strict=True)
            ]


def _batches(
    result: Any, rows: Sequence[Any], few: int, kinds: Sequence[ColumnKind], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of a result, of which the first have been fetched."""
    done = 0
    with contextlib.closing(result):
        while rows:
            columns = zip(schema.names, zip(*rows, strict=True), kinds, strict=True)
            arrays = [arrow_column(name, values, kind, done) for name, values, kind in columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            done += len(rows)
            rows = result.fetchmany(few)


def _engine(address: Address, folder: Path) -> sa.Engine:
    """What connects to the database. Raises InputError where a library for it is not installed, or its URL is wrong."""
    if address.scheme == "sqlite":
        _check_file(address, folder)
    try:
        url = sa.make_url(address.url)
        url = url.set(
            drivername="+".join(filter(None, (DIALECTS.get(address.scheme, address.scheme), address.adapter)))
        )
        return sa.create_engine(url, poolclass=sa.NullPool)
    except NoSuchModuleError:
        raise InputError(
            f"connection: {address.name}: SQLAlchemy knows no such database. Install its dialect, or a driver of ADBC, "
            "or mend the scheme."
        ) from None
    except ModuleNotFoundError as error:
        raise InputError(
            f"connection: {address.name}: SQLAlchemy needs the Python package {error.name!r} for it, which is not "
            f"installed: pip install {error.name}."
        ) from None
    except (SQLAlchemyError, ValueError, TypeError):
        raise InputError(f"connection: {address.name}: SQLAlchemy does not understand its URL.") from None


def _check_file(address: Address, folder: Path) -> None:
    """Raise TableReadError where there is no file of SQLite, which it would make."""
    if _has_file(address) and not address.file(folder).is_file():
        raise TableReadError(f"{address.file(folder)}: no such file.")


def _has_file(address: Address) -> bool:
    """Whether a database of SQLite is a file, and not in memory or a URI of its own."""
    return address.path not in ("", ":memory:") and not address.path.startswith("file:")
