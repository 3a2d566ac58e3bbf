"""The table that a configuration names, opened with what is kept of it: files, or a query on a database."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from ...utils.progress import Reporter
from ...utils.validation import check_exist
from ..configuration.config import Config
from ..configuration.settings import AnyKnownSettings, Known, Settings
from .table_state import KeptTable


def table_identity(config: Config) -> str:
    """Which table it is, without secrets: its path, or the database and the query."""
    given = config.document["input"]
    if config.table is not None:
        # As it is written where it is from the environment.
        return given["path"] if "${" in given["path"] else str(config.table)
    return f"{given['connection']}: {given['query']}"


@contextlib.contextmanager
def opened_table(config: Config, state: Path, report: Reporter) -> Iterator[KeptTable]:
    """The table, of which only what changed is read.

    Raises InputError, TableReadError, OutputError.
    """
    given, columns = config.settings.input, partial(needed_columns, config.settings)
    if config.table is not None:
        with KeptTable.of_files(config.table, state, columns, separator=given.separator, report=report) as table:
            yield table
        return
    from ...io.databases.open import open_query

    assert given.connection is not None
    assert given.query is not None
    with open_query(given.connection, given.query, given.driver, config.folder) as result:
        mark = None if given.watermark is None else result.watermark(given.watermark)
        key = None if mark is None else f"{result.identity}\n{given.watermark}\n{mark}"
        name = f"query on {config.document['input']['connection']}"
        kept = KeptTable.of_batches(result, name, state, columns, key=key, report=report)
    with kept as table:
        yield table


def needed_columns(settings: Settings, names: Sequence[str]) -> list[str] | None:
    """Of a table with columns `names` those that are scored, known, or named by anything else; None for all.

    Raises ColumnNotFoundError, with the key of the configuration, for one that is not there.
    """
    named = list(_named_columns(settings))
    for key, columns in named:
        check_exist(key, columns, names)
    if settings.score.columns is None:
        return None
    wanted = {column for _, columns in named for column in columns}
    return [name for name in names if name in wanted]


def _named_columns(settings: Settings) -> Iterator[tuple[str, Sequence[str]]]:
    """Which columns each key of a configuration names."""
    score, risk = settings.score, settings.risk
    yield "input.row_key", settings.input.row_key
    yield "score.columns", score.columns or ()
    yield "score.known", _columns_known(score.known)
    for name, known in (score.attackers or {}).items():
        yield f"score.attackers.{name}", _columns_known(known)
    yield "score.weights", () if score.weights is None else (score.weights,)
    yield "score.distances", list(score.distances)
    yield "risk.quasi_identifiers", risk.quasi_identifiers
    yield "risk.sensitive", risk.sensitive
    for number, gate in enumerate(settings.gates):
        yield f"gates.{number}.column", () if gate.column is None else (gate.column,)


def _columns_known(known: Known | None) -> Sequence[str]:
    if isinstance(known, AnyKnownSettings):
        return known.among or ()
    return known if isinstance(known, list) else ()
