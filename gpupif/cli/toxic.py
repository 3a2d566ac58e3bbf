"""The command `gpupif toxic`: each parameter of its function is an option, as Typer has it, so there are many."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from . import options
from .options import FileRoles, as_names, check_table, configured, show


def toxic(
    table: options.Table,
    size: Annotated[int, typer.Option(metavar="2|3", help="Pairs or triples of columns.")] = 2,
    columns: Annotated[str | None, typer.Option(metavar="A,B", help="Columns to look at. Default: all.")] = None,
    roles: options.RolesFile = None,
    top: Annotated[int, typer.Option(metavar="N", help="How many pairs of values to list.")] = 20,
    weights: options.SamplingWeights = None,
    device: options.Device = None,
    missing: options.Missing = "category",
    sep: options.Sep = None,
    memory_limit: options.StreamMemory = None,
    temp: options.StreamTemp = None,
    scheduler: options.Scheduler = None,
    workers: options.WorkerProcesses = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Rank pairs of columns of TABLE by what they tell together, and list the values far rarer than their parts."""
    from ..dask.client import Place

    place = Place(scheduler, workers)
    check_table(table, sep, place)

    from ..marginals.request import CountRequest
    from ..marginals.toxic_pairs import toxic_pairs
    from .cluster import find_anywhere

    given = as_names(columns)
    from_file = FileRoles(roles, table, sep, [*(given or ()), weights])
    request = CountRequest(from_file.known("columns", given), from_file.weights(weights), missing)
    find = partial(toxic_pairs, size=size, columns=request.columns, top=top, weights=request.weights, missing=missing)
    with configured(quiet, device, memory_limit=memory_limit, temp=temp):
        found = find_anywhere(find, table, request.pick, place, sep, memory_limit, temp)
    from_file.say(as_json, quiet)
    show(lambda: {"input": str(table), **from_file.facts(), **found.to_dict()}, found.print, as_json, quiet)
