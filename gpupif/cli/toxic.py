"""The command `gpupif toxic`: each parameter of its function is an option, as Typer has it, so there are many."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from .options import (
    Device,
    FileOptions,
    Json,
    Missing,
    Quiet,
    SamplingWeights,
    Scheduler,
    Sep,
    StreamMemory,
    StreamTemp,
    Table,
    WorkerProcesses,
    as_names,
    configured,
    show,
)


def toxic(
    table: Table,
    size: Annotated[int, typer.Option(metavar="2|3", help="Pairs or triples of columns.")] = 2,
    columns: Annotated[str | None, typer.Option(metavar="A,B", help="Columns to look at. Default: all.")] = None,
    top: Annotated[int, typer.Option(metavar="N", help="How many pairs of values to list.")] = 20,
    weights: SamplingWeights = None,
    device: Device = None,
    missing: Missing = "category",
    sep: Sep = None,
    memory_limit: StreamMemory = None,
    temp: StreamTemp = None,
    scheduler: Scheduler = None,
    workers: WorkerProcesses = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rank pairs of columns of TABLE by what they tell together, and list the values far rarer than their parts."""
    from ..dask.client import Place
    from ..marginals.request import CountRequest
    from ..marginals.toxic_pairs import toxic_pairs
    from .cluster import find_anywhere

    request = CountRequest(as_names(columns), weights, missing)
    find = partial(toxic_pairs, size=size, columns=request.columns, top=top, weights=weights, missing=missing)
    streams = FileOptions(sep, memory_limit, temp)
    with configured(quiet, device, memory_limit=memory_limit, temp=temp):
        found = find_anywhere(find, table, request.pick, Place(scheduler, workers), streams)
    show(lambda: {"input": str(table), **found.to_dict()}, found.print, as_json, quiet)
