"""Workloads of queries: counts, sums and means over conditions on columns, read from a file or from dictionaries."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, did_you_mean
from ..io.documents import read_document
from ..results.cell_condition import Condition
from ..utils.validation import brief, check_word
from .row_condition import parse_row_condition

KINDS = ("count", "sum", "mean")
KEYS = ("name", "kind", "column", "where")


@dataclass(frozen=True)
class AuditedQuery:
    """A query: a count of rows, or the sum or mean of a column, over the rows that meet a condition.

    name: str. The name, different from the names of all other queries.
    kind: "count", "sum" or "mean".
    column: str or None. The column that is summed; None for a count. Rows without a value there are left out.
    where: str or None. A condition on rows, such as ``age >= 30 and not county in ('Kent', 'Essex')``. None: all rows.

    Raises InputError for a query that is none of these.
    """

    name: str
    kind: str = "count"
    column: str | None = None
    where: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"queries: expected a name for each query, a text; got {brief(self.name)}.")
        try:
            check_word("kind", self.kind, KINDS)
            if (self.kind == "count") != (self.column is None):
                expected = "no column" if self.kind == "count" else "the name of the column"
                raise InputError(f"column: expected {expected} for a {self.kind}, got {brief(self.column)}.")
            if self.column is not None and not isinstance(self.column, str):
                raise InputError(f"column: expected the name of a column, got {brief(self.column)}.")
            if self.where is not None:
                parse_row_condition(self.where)
        except InputError as error:
            raise InputError(f"queries: query {brief(self.name)}: {error}") from None

    @property
    def condition(self) -> Condition | None:
        """The condition; None for all rows."""
        return None if self.where is None else parse_row_condition(self.where)


def read_queries(queries: Any, argument: str = "queries") -> list[AuditedQuery]:
    """Return the queries in a file of TOML, JSON or YAML, in a list of them or of dictionaries, or in a single one.

    A file has a list ``query``, in TOML a table ``[[query]]`` for each. Raises InputError.
    """
    if isinstance(queries, str | os.PathLike):
        document = read_document(argument, queries)
        unknown = [key for key in document if key != "query"]
        if unknown or not isinstance(document.get("query"), list):
            raise InputError(
                f"{argument}: {os.fspath(queries)}: expected a list 'query' of queries, in TOML [[query]] for each, "
                f"and nothing else; got {brief(unknown[0]) if unknown else 'none'}."
            )
        queries = document["query"]
    elif isinstance(queries, AuditedQuery | Mapping):
        queries = [queries]
    elif not isinstance(queries, Iterable):
        raise InputError(f"{argument}: expected the path of a file of queries, or a list; got {brief(queries)}.")
    made = [_query(argument, number, query) for number, query in enumerate(queries, 1)]
    if not made:
        raise InputError(f"{argument}: expected at least one query, got none.")
    repeated = [name for name, times in Counter(query.name for query in made).items() if times > 1]
    if repeated:
        raise InputError(f"{argument}: two queries are called {brief(repeated[0])}. Rename one.")
    return made


def _query(argument: str, number: int, given: Any) -> AuditedQuery:
    """Return a query. number: its number in the workload, from 1, for errors."""
    if isinstance(given, AuditedQuery):
        return given
    if not isinstance(given, Mapping):
        raise InputError(f"{argument}: query {number}: expected keys and values, {KEYS}; got {brief(given)}.")
    for key in given:
        if key not in KEYS:
            raise InputError(
                f"{argument}: query {number}: expected the keys {', '.join(KEYS)}; got {brief(key)}."
                f"{did_you_mean(str(key), KEYS)}"
            )
    if "name" not in given:
        raise InputError(f'{argument}: query {number}: has no name. Add name = "...".')
    return AuditedQuery(**given)
