"""The command `gpupif toxic`."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from .cli_options import Device, Json, Missing, Quiet, Sep, StreamMemory, StreamTemp, Table, as_names, show


def toxic(
    table: Table,
    size: Annotated[int, typer.Option(metavar="2|3", help="Pairs or triples of columns.")] = 2,
    columns: Annotated[str | None, typer.Option(metavar="A,B", help="Columns to look at. Default: all.")] = None,
    top: Annotated[int, typer.Option(metavar="N", help="How many pairs of values to list.")] = 20,
    device: Device = "auto",
    missing: Missing = "category",
    sep: Sep = None,
    memory_limit: StreamMemory = None,
    temp: StreamTemp = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rank pairs of columns of TABLE by what they tell together, and list the values far rarer than their parts."""
    from .toxic import find_toxic

    if quiet:
        warnings.simplefilter("ignore")
    visible = False if quiet else None
    found = find_toxic(table, size, as_names(columns), top, missing, visible, memory_limit, temp, sep, device)
    show(lambda: {"input": str(table), **found.to_dict()}, found.print, as_json, quiet)
