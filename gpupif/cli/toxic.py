"""The command `gpupif toxic`: each parameter of its function is an option, as Typer has it, so there are many."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from . import options
from .options import FileRoles, as_names, check_table, configured, show

if TYPE_CHECKING:
    from ..marginals.quasi_identifiers import QuasiIdentifiers
    from ..marginals.toxic_pairs import ToxicPairs

smallest_option = partial(typer.Option, rich_help_panel="Smallest sets of columns that tell rows apart")


def toxic(
    table: options.Table,
    size: Annotated[
        int | None, typer.Option(metavar="2|3", help="Pairs or triples of columns.", show_default="2")
    ] = None,
    columns: Annotated[str | None, typer.Option(metavar="A,B", help="Columns to look at. Default: all.")] = None,
    roles: options.RolesFile = None,
    top: Annotated[int, typer.Option(metavar="N", help="How many to list, of columns and of values.")] = 20,
    weights: options.SamplingWeights = None,
    device: options.Device = None,
    missing: options.Missing = "category",
    alpha: Annotated[
        float | None,
        smallest_option(metavar="0.9", help="List, in place of pairs, the smallest sets that reach this share."),
    ] = None,
    by: Annotated[
        str | None,
        smallest_option(
            metavar="distinction|separation",
            help="Share of what: of the rows, which differ from each other, or of the pairs of rows, which differ.",
            show_default="distinction",
        ),
    ] = None,
    max_size: Annotated[
        int | None, smallest_option(metavar="N", help="The most columns of a set.", show_default="3")
    ] = None,
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
    _check_together(size, weights, alpha, by, max_size)
    check_table(table, sep, place)

    from ..marginals.quasi_identifiers import quasi_identifiers
    from ..marginals.request import CountRequest
    from ..marginals.toxic_pairs import toxic_pairs
    from .cluster import find_anywhere

    given = as_names(columns)
    from_file = FileRoles(roles, table, sep, [*(given or ()), weights])
    # The ratios are of rows: a role of weights only says that the column is no quasi-identifier.
    counted = None if alpha is not None else from_file.weights(weights)
    request = CountRequest(from_file.known("columns", given), counted, missing)
    shared: dict[str, Any] = {"columns": request.columns, "top": top, "missing": missing}
    find: Callable[..., ToxicPairs | QuasiIdentifiers]
    if alpha is None:
        find = partial(toxic_pairs, size=2 if size is None else size, weights=request.weights, **shared)
    else:
        find = partial(quasi_identifiers, alpha=alpha, by=by or "distinction", max_size=max_size, **shared)
    with configured(quiet, device, memory_limit=memory_limit, temp=temp):
        found = find_anywhere(find, table, request.pick, place, sep, memory_limit, temp)
    from_file.say(as_json, quiet)
    show(lambda: {"input": str(table), **from_file.facts(), **found.to_dict()}, found.print, as_json, quiet)


def _check_together(
    size: int | None, weights: str | None, alpha: float | None, by: str | None, max_size: int | None
) -> None:
    """Raise InputError for options that do not go together."""
    if alpha is None:
        idle = [name for name, given in (("--by", by), ("--max-size", max_size)) if given is not None]
        if idle:
            raise InputError(f"{idle[0]}: goes with --alpha. Add that, or leave it out.")
    elif size is not None:
        raise InputError("--size: goes without --alpha, with which --max-size says how large sets are. Leave it out.")
    elif weights is not None:
        from ..utils.refused_combinations import WEIGHTS_RATIOS

        raise WEIGHTS_RATIOS.refusal()
