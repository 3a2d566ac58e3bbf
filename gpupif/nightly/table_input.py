"""The table that a configuration names, opened with what is kept of it: files, or a query on a database."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ..utils.progress import Reporter
from .config import Config
from .settings import AnyKnownSettings, Settings
from .table_state import KeptTable


def table_identity(config: Config) -> str:
    """Which table it is, without secrets: its path, or the database and the query."""
    if config.table is not None:
        return str(config.table)
    given = config.document["input"]
    return f"{given['connection']}: {given['query']}"


@contextlib.contextmanager
def opened_table(config: Config, state: Path, report: Reporter) -> Iterator[KeptTable]:
    """The table, of which only what changed is read.

    Raises InputError, TableReadError, OutputError.
    """
    given, columns = config.settings.input, needed_columns(config.settings)
    if config.table is not None:
        with KeptTable.of_files(config.table, state, columns, separator=given.separator, report=report) as table:
            yield table
        return
    from ..io.databases.open import open_query

    assert given.connection is not None
    assert given.query is not None
    with open_query(given.connection, given.query, given.driver, config.folder) as result:
        mark = None if given.watermark is None else result.watermark(given.watermark)
        key = None if mark is None else f"{table_identity(config)}\n{given.watermark}\n{mark}"
        name = f"query on {config.document['input']['connection']}"
        kept = KeptTable.of_batches(result, name, state, columns, key=key, report=report)
    with kept as table:
        yield table


def needed_columns(settings: Settings) -> list[str] | None:
    """The columns that are scored, known, or named by anything else; None for all of the table."""
    score, risk = settings.score, settings.risk
    if score.columns is None:
        return None
    named = [*score.columns, *risk.quasi_identifiers, *risk.sensitive, *settings.input.row_key]
    for known in (score.known, *(score.attackers or {}).values()):
        if isinstance(known, AnyKnownSettings):
            named += known.among or []
        elif isinstance(known, list):
            named += known
    named += [] if score.weights is None else [score.weights]
    named += [gate.column for gate in settings.gates if gate.column is not None]
    return list(dict.fromkeys(named))
