"""The command `gpupif global-risk`: each parameter of its function is an option, as Typer has it, so there are many."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from ..errors import InputError
from . import options
from .options import FileRoles, as_names, check_table, configured, show

MissingValues = Annotated[
    str, options.table_option(metavar="category|error", help="Missing values: one more value, or refuse.")
]


def global_risk(
    table: options.Table,
    quasi_identifiers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns that an attacker may know of a person; or give --roles."),
    ] = None,
    roles: options.RolesFile = None,
    weights: options.SamplingWeights = None,
    sampling_fraction: Annotated[
        float | None,
        options.table_option(metavar="0.01", help="Instead of weights: share of the population that TABLE is."),
    ] = None,
    interactions: Annotated[
        str | None,
        options.table_option(
            metavar="two-way|A:B,A:C", help="Interactions of the model: of all pairs, or these. Default: none."
        ),
    ] = None,
    missing: MissingValues = "category",
    device: options.Device = None,
    sep: options.Sep = None,
    memory_limit: options.StreamMemory = None,
    temp: options.StreamTemp = None,
    scheduler: options.Scheduler = None,
    workers: options.WorkerProcesses = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Estimate how many unique rows of TABLE are unique in its population, by a log-linear model."""
    from ..dask.client import Place

    place = Place(scheduler, workers)
    check_table(table, sep, place)
    known = as_names(quasi_identifiers, "quasi_identifiers")
    if known is None and roles is None:
        raise InputError("quasi_identifiers: expected columns, got none. Name them, or give their --roles.")
    from_file = FileRoles(roles, table, sep, [*(known or ()), weights])
    known = from_file.known("quasi-identifiers", known) or []
    if sampling_fraction is None:
        weights = from_file.weights(weights)
    with configured(quiet, device, memory_limit=memory_limit, temp=temp):
        from ..disclosure.global_risk import global_risk as find_global_risk
        from ..disclosure.request import pick_needed
        from .cluster import find_anywhere

        find = partial(
            find_global_risk,
            quasi_identifiers=known,
            weights=weights,
            sampling_fraction=sampling_fraction,
            interactions=_interactions(interactions),
            missing=missing,
        )
        found = find_anywhere(
            find, table, partial(pick_needed, known, [], weights=weights), place, sep, memory_limit, temp
        )
    from_file.say(as_json, quiet)
    show(lambda: {"input": str(table), **from_file.facts(), **found.to_dict()}, found.print, as_json, quiet)


def _interactions(text: str | None) -> Any:
    """A word as it is, or the interactions that A:B,A:C names."""
    if text is None or ":" not in text:
        return text
    return [one.split(":") for one in as_names(text, "interactions") or []]
