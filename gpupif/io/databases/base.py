"""The interface of a connection to a database, and the table that is the result of a query."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from ...errors import DatabaseUnavailableError, GpupifError, InputError, TableReadError, marked
from ...utils.validation import check_unique, whole_number
from ..base import CHUNK_ROWS
from .address import Address
from .plain_types import plain_batch, plain_schema

# The values that a message quotes: all text from the first quotation mark of a line to the last.
QUOTED = re.compile(r"'.*'|\".*\"|(?<=\bvalue )\S+")
# The text that libraries put before PostgreSQL's own message.
POSTGRESQL_PREAMBLE = re.compile(r"^.*?\b(?:ERROR|FATAL|PANIC):\s+")
# The first words of statements that read.
READING = ("SELECT", "WITH", "VALUES", "TABLE", "FROM")
# Comments, texts and names, in which a semicolon ends no statement.
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
    """The result of a query.

    schema: the columns. batches: the rows; each batch is fetched when it is taken. close: ends the query.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    close: Callable[[], None]


class Database(ABC):
    """A connection to a database, in a transaction that only reads.

    errors: the exceptions that the library of the connection raises.
    """

    errors: tuple[type[Exception], ...]

    @abstractmethod
    def run(self, query: str, rows: int) -> Answer:
        """Start a query. At most one query runs at a time. rows: the rows of a batch, about."""

    @abstractmethod
    def value(self, query: str) -> Any:
        """Return the only value of the result of a query."""

    @abstractmethod
    def close(self) -> None:
        """End the transaction and the connection. It may be called again."""

    def quote(self, name: str) -> str:
        """Return a column's name as it is written in a query."""
        return standard_quote(name)

    @staticmethod
    def reason(error: Exception) -> str:
        """Return the message of an error in the words of the database."""
        return str(error)


class QueryTable:
    """The result of a query on a database, read in batches of rows and never held whole; a context manager.

    All rows are read in one transaction, which does not write. Errors of the database become TableReadError, without
    secrets of the connection. The connection is closed after an error.

    name: text. The database in messages, such as "database postgresql at localhost/people", without secrets.
    identity: text. A hash of the database, the user, the options and the query, not of the password. Results with equal
        identities have the same rows, unless the database changes.
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
        """The columns with their types, which are plain types and the same in all batches.

        Raises TableReadError for a query that fails. Raises InputError for no columns, and for names that repeat.
        Raises ColumnTypeError for lists, structs and other types without plain values.
        """
        if self._schema is None:
            answer = self._started(CHUNK_ROWS)
            with self._wrap("the query failed"):
                self._schema = _checked(answer.schema)
        return self._schema

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    def batches(self, rows: int = CHUNK_ROWS) -> Iterator[pa.RecordBatch]:
        """Return an iterator over all rows in batches, none of them empty. Each call runs the query again.

        rows: whole number. Rows of a batch, at most. Default: 65,536. Raises the errors of `schema`, TableReadError if
        the connection is lost, and InputError while another iterator of this table is in use.
        """
        rows = whole_number("rows", rows, "")
        return self._batches(rows)

    def watermark(self, column: str) -> str | None:
        """Return the highest value of a column as text; None if there is no value, or if the highest is NaN.

        It is the highest value of the rows that `batches` yields. Raises TableReadError, also for a column that the
        result lacks, and InputError while an iterator of `batches` is in use.
        """
        self._check_idle()
        self._drop_answer()
        with self._wrap(f"the highest value of column {column!r} could not be read"):
            value = self._database.value(highest(self._query, self._database.quote(column)))
        # NaN is a missing value; some databases have it as the highest.
        return None if value is None or value != value else _text(value)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as a stream of Arrow, for libraries that take such a stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches()).__arrow_c_stream__(requested_schema)

    def close(self) -> None:
        """End the connection. It may be called again."""
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
                event = f"reading broke off after {done:,} rows" if done else "the query failed"
                kind = DatabaseUnavailableError if done else TableReadError
                with self._wrap(event, quotes=True, kind=kind):
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
        """Return the result of the query, of which nothing has been read; start the query if it is not running."""
        if self._answer is None:
            with self._wrap("the query failed"):
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
        # If the connection is lost, there is no query to end.
        with contextlib.suppress(*self._database.errors):
            answer.close()

    @contextlib.contextmanager
    def _wrap(self, event: str, quotes: bool = False, kind: type[TableReadError] = TableReadError) -> Iterator[None]:
        """Raise TableReadError for an error of the database while the block runs, and close the connection.

        event: the failure in words, as the message begins. quotes: whether the database's words may quote values,
        which are then left out. kind: the type of the error. An error that is certainly due to a value is a plain
        TableReadError.
        """
        try:
            yield
        except self._database.errors as error:
            self.close()
            # Do not chain the library's error: its message may have secrets.
            reason, is_data_error = self._database.reason(error), _is_data_error(error)
            given = TableReadError if is_data_error else kind
            raise _failure(self._address, event, reason, quotes or is_data_error, given) from None
        except GpupifError:
            self.close()
            raise


@contextlib.contextmanager
def connecting(address: Address, library: type[Database], errors: tuple[type[Exception], ...]) -> Iterator[None]:
    """Raise DatabaseUnavailableError if connecting fails while the block runs."""
    try:
        yield
    except errors as error:
        reason = library.reason(error)
        raise _failure(address, "could not connect", reason, kind=DatabaseUnavailableError) from None


def _failure(
    address: Address,
    event: str,
    reason: str,
    quotes: bool = False,
    kind: type[TableReadError] = TableReadError,
) -> TableReadError:
    """Return the error for a failure with the first line of the database's own words, without secrets.

    quotes: whether quoted texts may be values of the table; they are left out then. kind: the type of the error.
    """
    first = next((line for line in reason.splitlines() if line.strip()), "no reason given")
    first = POSTGRESQL_PREAMBLE.sub("", first)
    if quotes:
        first = QUOTED.sub("(not shown)", first)
    said = address.redact(" ".join(first.split())).rstrip(".:!")
    # A database that cannot be reached has not read any value.
    shown = said if kind is DatabaseUnavailableError else marked(said)
    return kind(f"{address.name}: {event}: {shown}.")


def _checked(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a result with plain types; raises InputError for no columns, or for names that repeat."""
    if not schema.names:
        raise InputError("query: expected at least one column in its result, got none.")
    check_unique(schema.names, "query")
    return plain_schema(schema)


def _is_data_error(error: Exception) -> bool:
    """Return whether a value is the reason for an error: Python's database interface names its class DataError."""
    return any(kind.__name__ == "DataError" for kind in type(error).__mro__)


def _text(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)


def one_query(query: str) -> str:
    """Return a query without the semicolon at its end.

    Raises InputError for no statement, for several, or for a statement that does not read.
    """
    code = NO_CODE.sub(lambda match: " " * len(match.group()), query)
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
    """Return a query as a table of another query, named gpupif_rows. A comment may end the query: a line break follows.

    Write gpupif_rows before the names of its columns: SQLite takes a quoted name alone for a text if no column has it.
    """
    return f"(\n{query}\n) gpupif_rows"


def highest(query: str, column: str) -> str:
    """Return the query for the highest value of a column of the result of a query. column: its name in quotes."""
    return f"SELECT max(gpupif_rows.{column}) FROM {relation(query)}"


def standard_quote(name: str) -> str:
    """Return a column's name in the quotes of standard SQL."""
    return '"' + name.replace('"', '""') + '"'
