"""What is asked of a database, and the table that a query on it gives."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from ...errors import DatabaseUnavailableError, GpupifError, InputError, TableReadError
from ...utils.validation import check_unique, whole_number
from ..base import PIECE_ROWS
from .address import Address
from .plain_types import plain_batch, plain_schema

# What a message of a value, not of a name, quotes: all from the first quotation mark on a line to the last.
QUOTED = re.compile(r"'.*'|\".*\"|(?<=\bvalue )\S+")
# What comes before PostgreSQL's own words.
POSTGRESQL_PREAMBLE = re.compile(r"^.*?\b(?:ERROR|FATAL|PANIC):\s+")
READING = ("SELECT", "WITH", "VALUES", "TABLE", "FROM")
# What may hold a semicolon that ends nothing.
NO_CODE = re.compile(
    r"""
    --[^\n]*            # a comment to the end of the line
    | /\*.*?\*/         # or in several
    | '(?:[^']|'')*'    # text
    | "(?:[^"]|"")*"    # names
    | `[^`]*`
    | (\$\w*\$).*?\1    # text in dollars
    """,
    re.VERBOSE | re.DOTALL,
)


class Answer(NamedTuple):
    """The result of a query: its schema; its rows, which come as they are asked for; and what ends the query."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    close: Callable[[], None]


class Database(ABC):
    """A connection to a database, in a transaction that only reads.

    errors: what goes wrong with it, as its library raises it.
    """

    errors: tuple[type[Exception], ...]

    @abstractmethod
    def run(self, query: str, rows: int) -> Answer:
        """Start a query whose rows come in batches of about so many; at most one goes on at a time."""

    @abstractmethod
    def value(self, query: str) -> Any:
        """The one value that a query gives."""

    @abstractmethod
    def close(self) -> None:
        """End the transaction and the connection; may be said again."""

    def quote(self, name: str) -> str:
        """A column's name as a query has it."""
        return standard_quote(name)

    @staticmethod
    def reason(error: Exception) -> str:
        """What an error says, as the database worded it."""
        return str(error)


class QueryTable:
    """The result of a query on a database, read in batches of rows and never held whole; a context manager.

    All that is read of it is of one transaction, which does not write. Errors of the database are TableReadError,
    without what is secret of the connection; after one the connection is closed.

    name: of the database, "database postgresql at localhost/people", without secrets. identity: a hash of the database,
    the user, its options and the query, whatever the password: results of the same are of the same rows while these do
    not change.
    """

    def __init__(self, database: Database, address: Address, query: str) -> None:
        self.name = address.name
        self.identity = hashlib.blake2b(f"{address.redact(address.url)}\n{query}".encode(), digest_size=32).hexdigest()
        self._database = database
        self._address = address
        self._query = query
        self._answer: Answer | None = None
        self._schema: pa.Schema | None = None
        self._is_read = False

    @property
    def schema(self) -> pa.Schema:
        """Columns and their types, of plain values, the same in all batches.

        Raises TableReadError for a query that fails, InputError for columns that are none or have the same name, and
        ColumnTypeError for lists and the like.
        """
        if self._schema is None:
            answer = self._started(PIECE_ROWS)
            with self._told("the query failed"):
                self._schema = _checked(answer.schema)
        return self._schema

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.schema.names)

    def batches(self, rows: int = PIECE_ROWS) -> Iterator[pa.RecordBatch]:
        """All rows, in batches of at most so many, none of them empty; anew with each call, one after the other.

        Raises what `schema` does, TableReadError where the connection is lost, and InputError while other batches of
        this table are read.
        """
        rows = whole_number("rows", rows, "")
        return self._batches(rows)

    def watermark(self, column: str) -> str | None:
        """The highest value of a column as text, as of the rows that `batches` gives; None where there is none.

        Raises TableReadError, also for a column that the result does not have.
        """
        self._check_idle()
        self._drop_answer()
        with self._told(f"the highest value of column {column!r} could not be read"):
            value = self._database.value(highest(self._query, self._database.quote(column)))
        # NaN is a missing value; some databases have it as the highest.
        return None if value is None or value != value else _text(value)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as a stream of Arrow, for what takes one."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches()).__arrow_c_stream__(requested_schema)

    def close(self) -> None:
        """End the connection; may be said again."""
        self._drop_answer()
        with contextlib.suppress(*self._database.errors):
            self._database.close()

    def __enter__(self) -> QueryTable:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        schema = self.schema
        self._check_idle()
        self._is_read = True
        done = 0
        answer = self._started(rows)
        self._answer = None
        try:
            while True:
                what = f"reading broke off after {done:,} rows" if done else "the query failed"
                kind = DatabaseUnavailableError if done else TableReadError
                with self._told(what, of_values=True, kind=kind):
                    batch = next(answer.batches, None)
                    if batch is None:
                        return
                    plain = plain_batch(batch, schema)
                for start in range(0, plain.num_rows, rows):
                    yield plain.slice(start, rows)
                done += plain.num_rows
        finally:
            self._is_read = False
            self._close(answer)

    def _started(self, rows: int) -> Answer:
        """The query's answer, of which nothing has been read."""
        if self._answer is None:
            with self._told("the query failed"):
                self._answer = self._database.run(self._query, rows)
        return self._answer

    def _check_idle(self) -> None:
        if self._is_read:
            raise InputError(f"{self.name}: its rows are being read. Read them to the end, or close what reads them.")

    def _drop_answer(self) -> None:
        if self._answer is not None:
            self._close(self._answer)
            self._answer = None

    def _close(self, answer: Answer) -> None:
        # With a connection that is lost there is nothing to be ended.
        with contextlib.suppress(*self._database.errors):
            answer.close()

    @contextlib.contextmanager
    def _told(self, what: str, of_values: bool = False, kind: type[TableReadError] = TableReadError) -> Iterator[None]:
        """Words for what goes wrong with the database, which is closed then; of_values: it may be a value's fault.

        kind: of the error, unless it is a value's fault for certain.
        """
        try:
            yield
        except self._database.errors as error:
            self.close()
            # Not raised from it: that would show what the library says, secrets and all.
            reason, of_data = self._database.reason(error), _is_of_data(error)
            given = TableReadError if of_data else kind
            raise _failure(self._address, what, reason, of_values or of_data, given) from None
        except GpupifError:
            self.close()
            raise


@contextlib.contextmanager
def connecting(address: Address, library: type[Database], errors: tuple[type[Exception], ...]) -> Iterator[None]:
    """Words for what goes wrong where there is no connection yet."""
    try:
        yield
    except errors as error:
        reason = library.reason(error)
        raise _failure(address, "could not connect", reason, kind=DatabaseUnavailableError) from None


def _failure(
    address: Address,
    what: str,
    reason: str,
    of_values: bool = False,
    kind: type[TableReadError] = TableReadError,
) -> TableReadError:
    """What to raise where something fails for a reason that a database words: its first line, without secrets.

    of_values: what it quotes may be values of the table, and is left out.
    """
    first = next((line for line in reason.splitlines() if line.strip()), "no reason given")
    first = POSTGRESQL_PREAMBLE.sub("", first)
    if of_values:
        first = QUOTED.sub("(not shown)", first)
    return kind(f"{address.name}: {what}: {address.redact(' '.join(first.split())).rstrip('.:!')}.")


def _checked(schema: pa.Schema) -> pa.Schema:
    """The schema of a result with plain types; raises InputError for no columns, or for names that repeat."""
    if not schema.names:
        raise InputError("query: expected at least one column in its result, got none.")
    check_unique(schema.names, "query")
    return plain_schema(schema)


def _is_of_data(error: Exception) -> bool:
    """Whether it is of values, by the name that Python's interface of databases has for such errors."""
    return any(kind.__name__ == "DataError" for kind in type(error).__mro__)


def _text(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)


def one_query(query: str) -> str:
    """The query without the semicolon that ends it. Raises InputError for none, several, or one that does not read."""
    code = NO_CODE.sub(lambda found: " " * len(found.group()), query)
    first = re.match(r"[\s(]*(\w*)", code)
    word = first.group(1).upper() if first else ""
    if word not in READING:
        came = f"one that begins with {word}" if word else "none"
        raise InputError(f"query: expected one SELECT (or WITH ... SELECT, VALUES, TABLE), got {came}.")
    end = code.find(";")
    if end >= 0 and code[end:].strip("; \t\r\n"):
        raise InputError("query: expected one SELECT, got several statements. Leave out what follows the first one.")
    return query if end < 0 else query[:end]


def relation(query: str) -> str:
    """The result of a query as a table, gpupif_rows, of another. The last line of it may be a comment.

    Columns are to be named by it: alone a name in quotes that no column has is a text for SQLite.
    """
    return f"(\n{query}\n) gpupif_rows"


def highest(query: str, column: str) -> str:
    """The query for the highest value of a column, its name quoted, of the result of another query."""
    return f"SELECT max(gpupif_rows.{column}) FROM {relation(query)}"


def standard_quote(name: str) -> str:
    """A column's name as standard SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'
