"""The command `gpupif audit`: each parameter of its function is an option, as Typer has it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..utils.validation import brief
from . import options
from .option_values import FileRoles, check_goes_with
from .options import ClusterOptions, ReportFile, option, table_option


def audit(
    queries: Annotated[
        Path, typer.Argument(help="Queries: a list 'query' in a file of TOML, JSON or YAML.", show_default=False)
    ],
    table: Path | None = table_option(
        "TABLE", "The table that the queries ask. Default: definitions alone are compared."
    ),
    k: int = option("ROWS", "The fewest rows of a group that may be given away.", default=5),
    most: int | None = option("N", "The most queries."),
    overlap: int | None = option("ROWS", "The most rows that two queries may have in common."),
    bound: list[str] | None = option(
        "C=LOW:HIGH", "With --table: bounds of a summed column, either may be empty. May be repeated.", "--bound"
    ),
    width: float | None = option("W", "With --bound: report values bounded within this width.", show_default="0"),
    next_query: Path | None = option("FILE", "Say whether the queries of this file may be answered too.", "--next"),
    top: int = option("N", "How many findings to list.", default=20),
    report: options.Report = None,
    redact: options.Redact = False,
    overwrite: options.Overwrite = False,
    device: options.Device = None,
    *,
    shared: ClusterOptions,
) -> None:
    """Say what the answers to QUERIES give away: single values, small groups, small sets.

    Ends with exit code 3 if there is a finding; with --next, if that adds one.
    """
    if table is not None:
        shared.check(table)
    check_goes_with("--bound", bound, width=width)
    to = ReportFile(report, overwrite, queries, redact)

    from ..release.audit import audit as find_audit
    from ..release.query_file import read_queries
    from ..release.query_sets import query_request

    asked = read_queries(queries)
    more = None if next_query is None else read_queries(next_query, "next")
    limits = dict(map(_bounds, bound or ()))
    given: dict[str, Any] = {"k": k, "most": most, "overlap": overlap, "bounds": limits, "width": width or 0.0}
    given |= {"next": more, "top": top}
    with shared.configured(device):
        if table is None:
            found = find_audit(asked, **given)
        else:
            request = query_request([*asked, *(more or ())])
            found = shared.find(partial(_of_table, find_audit, asked, given), table, request.pick)
    shared.report(found, FileRoles(None, queries, shared.sep), to=to, queries=queries, input=table)
    if found.disclosed if found.allowed is None else not found.allowed:
        raise typer.Exit(3)


def _of_table(find: Any, queries: Any, given: dict[str, Any], table: Any) -> Any:
    return find(queries, table, **given)


def _bounds(text: str) -> tuple[str, tuple[float | None, float | None]]:
    """Return the column and the bounds in a text. Raises InputError."""
    name, _, ends = text.rpartition("=")
    low, colon, high = ends.partition(":")
    try:
        pair = float(low) if low else None, float(high) if high else None
    except ValueError:
        colon = ""
    if not name or not colon:
        raise InputError(f"bound: expected COLUMN=LOW:HIGH, such as salary=0: or age=0:120; got {brief(text)}.")
    return name, pair
