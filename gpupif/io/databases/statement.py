"""A query seen as text: whether it is one, and one that reads."""

from __future__ import annotations

import re

from ...errors import InputError

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
