"""Databases that are read by SQLAlchemy. Its rows of Python objects become Arrow batches here."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError

from ...errors import ColumnTypeError, InputError, TableReadError
from ...utils.validation import check_unique
from .address import Address, read_only_uri
from .base import Answer, Database, connecting, relation, standard_quote
from .plain_types import EXPECTED, MEND, decimal_text, decimal_type

# The statement that begins a transaction that only reads, in one state of the database. Other databases keep their
# default.
BEGIN = {
    "postgresql": "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "sqlite": "BEGIN",
    "mysql": "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    "mariadb": "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    "oracle": "SET TRANSACTION READ ONLY",
}
# The dialect of SQLAlchemy for a scheme, if it has another name than the scheme.
DIALECTS = {"postgres": "postgresql"}
# The file is named by a URI, and several threads may read it, one after the other.
SQLITE_OPTIONS = {"uri": "true", "check_same_thread": "false"}
# Cells that are Python objects at the same time, at most.
MOST_CELLS = 1 << 20
# The replacement of % while a name is quoted: dialects with % before parameters would double it.
PERCENT = "\ufffc"
CAST = "Give it one type in the query: CAST(... AS ...)."


class ColumnKind(NamedTuple):
    """The kind of values of a column.

    type: the Arrow type. classes: the Python classes of the values; empty if only missing values have been seen.
    convert: makes of a value an object that Arrow takes; None if Arrow takes the value as it is.
    """

    type: pa.DataType
    classes: frozenset[type]
    convert: Callable[[Any], Any] | None = None

    @property
    def is_unknown(self) -> bool:
        """True if only missing values have been seen."""
        return not self.classes


def _kind(kind: pa.DataType, *classes: type, convert: Callable[[Any], Any] | None = None) -> ColumnKind:
    return ColumnKind(kind, frozenset(classes), convert)


UNKNOWN = _kind(pa.null())
WHOLE = _kind(pa.int64(), int)
NUMBERS = _kind(pa.float64(), float, int)
TEXT = _kind(pa.string(), str)
BYTES = _kind(pa.binary(), bytes, bytearray, memoryview, convert=bytes)
ADDRESSES = (ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Interface, ipaddress.IPv6Interface)
NETWORKS = (ipaddress.IPv4Network, ipaddress.IPv6Network)
KINDS = (
    _kind(pa.bool_(), bool),
    WHOLE,
    NUMBERS,
    TEXT,
    BYTES,
    _kind(pa.date32(), datetime.date),
    _kind(pa.timestamp("us"), datetime.datetime),
    _kind(pa.time64("us"), datetime.time),
    _kind(pa.duration("us"), datetime.timedelta),
    _kind(pa.string(), uuid.UUID, *ADDRESSES, *NETWORKS, convert=str),
)
ZONED = _kind(pa.timestamp("us", "UTC"), datetime.datetime)
# The kind of a column by all results of SQLite's typeof, without "null", the result for a missing value.
SQLITE_KINDS = {
    frozenset(): UNKNOWN,
    frozenset({"integer"}): WHOLE,
    frozenset({"real"}): NUMBERS,
    frozenset({"integer", "real"}): NUMBERS,
    frozenset({"text"}): TEXT,
    frozenset({"blob"}): BYTES,
}


def sqlite_kind(name: str, types: Iterable[str]) -> ColumnKind:
    """Return the kind of a column of SQLite; raises TableReadError for types that do not go together.

    types: the results of typeof for all values of the column.
    """
    given = frozenset(types) - {"null", ""}
    if given not in SQLITE_KINDS:
        raise TableReadError(f"column {name!r}: expected values of one type, got {' and '.join(sorted(given))}. {CAST}")
    return SQLITE_KINDS[given]


def find_kind(name: str, values: Iterable[Any], declared: tuple[int | None, int | None]) -> ColumnKind:
    """Return the kind of a column by some of its values.

    declared: precision and scale of decimals, see `decimal_type`. Raises ColumnTypeError for values without a kind, and
    TableReadError for values of several kinds.
    """
    values = [value for value in values if value is not None]
    classes = frozenset(map(type, values))
    if not classes:
        return UNKNOWN
    if classes == {Decimal}:
        kind = decimal_type(*declared)
        return _kind(kind, Decimal, convert=decimal_text if pa.types.is_string(kind) else _number)
    if datetime.time in classes and any(value.tzinfo is not None for value in values):
        raise ColumnTypeError(name, "time with time zone", EXPECTED, MEND)
    if classes == {datetime.datetime} and values[0].tzinfo is not None:
        return ZONED
    kind = next((kind for kind in KINDS if classes <= kind.classes), None)
    if kind is not None:
        return kind
    came = " and ".join(sorted(kind.__name__ for kind in classes))
    if len(classes) == 1:
        raise ColumnTypeError(name, came, EXPECTED, MEND)
    raise TableReadError(f"column {name!r}: expected values of one type, got {came}. {CAST}")


def arrow_column(name: str, values: Sequence[Any], kind: ColumnKind, row: int) -> pa.Array:
    """Return values of a column as Arrow data.

    row: the number, from 0, of the row of the first value. Raises TableReadError, without the value, for a value that
    is not of the column's kind.
    """
    odd_classes = set(map(type, values)) - kind.classes - {type(None)}
    if odd_classes:
        place = next(place for place, value in enumerate(values) if type(value) in odd_classes)
        expected = "nothing" if kind.is_unknown else kind.type
        raise TableReadError(
            f"column {name!r}: expected {expected}, as in the rows before, got {type(values[place]).__name__} in row "
            f"{row + place} (from 0). {CAST}"
        )
    if kind.convert is not None:
        values = [None if value is None else kind.convert(value) for value in values]
    try:
        return pa.array(values, kind.type)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        raise TableReadError(
            f"column {name!r}: values from row {row} (from 0) on do not fit {kind.type}. {CAST}"
        ) from None


def _number(value: Decimal) -> Decimal | None:
    return value if value.is_finite() else None


class SqlAlchemyDatabase(Database):
    """A connection by SQLAlchemy, for any dialect whose library is installed."""

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
        with contextlib.ExitStack() as opened:
            begun = opened.enter_context(contextlib.closing(self._begin(query, rows)))
            check_unique(begun.names, "query")
            kinds = self._kinds(query, begun)
            if UNKNOWN in kinds and not begun.is_whole and self._dialect.name != "sqlite":
                # Some libraries can have only one open result.
                begun.close()
                known = zip(begun.names, begun.digits, kinds, strict=True)
                kinds = [
                    find_kind(name, [self._some_value(query, name)], digits) if kind is UNKNOWN else kind
                    for name, digits, kind in known
                ]
                begun = opened.enter_context(contextlib.closing(self._begin(query, rows)))
            opened.pop_all()
        schema = pa.schema([(name, kind.type) for name, kind in zip(begun.names, kinds, strict=True)])
        return Answer(schema, begun.batches(kinds, schema), begun.close)

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
        # SQLAlchemy's own message has the statement in it.
        error = getattr(error, "orig", None) or error
        last = error.args[-1] if error.args else ""
        return last if isinstance(last, str) and last else str(error)

    def _execute(self, query: str, rows: int | None = None) -> Any:
        """Return the result of a statement, in which % is no parameter.

        rows: the rows to fetch at a time while the database finds them. Default: all at once.
        """
        options = {"no_parameters": True} if rows is None else {"no_parameters": True, "yield_per": rows}
        return self._connection.exec_driver_sql(query, execution_options=options)

    def _begin(self, query: str, rows: int) -> Begun:
        """Run a query, and fetch the first rows of its result."""
        result = self._execute(query, rows)
        names = [column[0] for column in result.cursor.description]
        digits = [(column[4], column[5]) for column in result.cursor.description]
        few = max(1, min(rows, MOST_CELLS // max(1, len(names))))
        return Begun(result, names, digits, few, result.fetchmany(few))

    def _kinds(self, query: str, begun: Begun) -> list[ColumnKind]:
        """Return the kind of each column by its first values.

        In SQLite each value may have its own type, so all values of a column are looked at.
        """
        if self._dialect.name != "sqlite":
            columns = list(zip(*begun.first, strict=True)) or [()] * len(begun.names)
            return [find_kind(*column) for column in zip(begun.names, columns, begun.digits, strict=True)]
        types = ", ".join(f"group_concat(DISTINCT typeof(gpupif_rows.{standard_quote(name)}))" for name in begun.names)
        with contextlib.closing(self._execute(f"SELECT {types} FROM {relation(query)}")) as result:
            types_by_name = zip(begun.names, result.fetchone(), strict=True)
            return [sqlite_kind(name, (types or "").split(",")) for name, types in types_by_name]

    def _some_value(self, query: str, name: str) -> Any:
        """Return a value of a column of a query's result; None if all values are missing."""
        column = f"gpupif_rows.{self.quote(name)}"
        statement = f"SELECT {column} FROM {relation(query)} WHERE {column} IS NOT NULL"
        with contextlib.closing(self._execute(statement, 1)) as result:
            row = result.fetchone()
            return None if row is None else row[0]


class Begun(NamedTuple):
    """A result whose first rows have been fetched.

    result: the result of SQLAlchemy.
    names: the columns.
    digits: precision and scale of each column, None if the library does not say.
    few: the rows that are fetched at a time.
    first: the first rows, `few` at most.
    """

    result: Any
    names: list[str]
    digits: list[tuple[int | None, int | None]]
    few: int
    first: Sequence[Any]

    @property
    def is_whole(self) -> bool:
        """True if there are no further rows."""
        return len(self.first) < self.few

    def batches(self, kinds: Sequence[ColumnKind], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield all rows. kinds: the kind of each column."""
        rows, done = self.first, 0
        while rows:
            columns = zip(self.names, zip(*rows, strict=True), kinds, strict=True)
            arrays = [arrow_column(name, values, kind, done) for name, values, kind in columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            done += len(rows)
            rows = self.result.fetchmany(self.few)

    def close(self) -> None:
        """End the result. It may be called again."""
        self.result.close()


def _engine(address: Address, folder: Path) -> sa.Engine:
    """Return SQLAlchemy's engine, which connects to the database.

    Raises InputError if a library for the database is not installed, or if the URL is wrong. Raises TableReadError for
    a file of SQLite that does not exist.
    """
    names = (DIALECTS.get(address.scheme, address.scheme), address.adapter)
    file = read_only_uri(address, folder) if address.scheme == "sqlite" else None
    try:
        url = sa.make_url(address.url).set(drivername="+".join(filter(None, names)))
        if file is not None:
            url = url.set(database=file).update_query_dict(SQLITE_OPTIONS)
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
