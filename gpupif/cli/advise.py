"""The command `gpupif advise`: each parameter of its function is an option, as Typer has it, so there are many."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from . import options
from .options import FileRoles, as_names, check_table, configured, show


def advise(
    table: options.Table,
    hierarchies: options.Hierarchies = None,
    criterion: Annotated[
        str, typer.Option(metavar="pif95|k|'max csf'|...", help="What is to be less risky: changes are ranked by it.")
    ] = "pif95",
    columns: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns that are scored and known. Default: all.")
    ] = None,
    quasi_identifiers: Annotated[
        str | None, typer.Option(metavar="A,B", help="In place of --columns: those that an attacker may know.")
    ] = None,
    sensitive: Annotated[
        str | None, typer.Option(metavar="C,D", help="With them: columns that are scored, which stay as they are.")
    ] = None,
    roles: options.RolesFile = None,
    device: options.Device = None,
    sep: options.Sep = None,
    memory_limit: options.StreamMemory = None,
    temp: options.StreamTemp = None,
    scheduler: options.Scheduler = None,
    workers: options.WorkerProcesses = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Rank what dropping or coarsening each column of TABLE buys: less risk per bit of information given up."""
    from ..dask.client import Place

    place = Place(scheduler, workers)
    check_table(table, sep, place)

    from ..protection.advise import advise as find_advice
    from ..protection.advise import pick_needed
    from .cluster import find_anywhere

    every, attributes = as_names(columns), as_names(sensitive, "sensitive")
    known = as_names(quasi_identifiers, "quasi_identifiers")
    from_file = FileRoles(roles, table, sep, [*(known or ()), *(attributes or ())], every)
    if roles is not None:
        from_file.warn_of_weights()
        known = from_file.known("quasi-identifiers", known)
        attributes = from_file.take("sensitive", attributes, lambda given: given.sensitive)
        # The roles say which of these columns are known.
        every = None
    find = partial(
        find_advice,
        hierarchies=hierarchies,
        criterion=criterion,
        columns=every,
        quasi_identifiers=known,
        sensitive=attributes,
    )
    with configured(quiet, device, memory_limit=memory_limit, temp=temp):
        pick = partial(pick_needed, every, known, attributes, criterion)
        found = find_anywhere(find, table, pick, place, sep, memory_limit, temp)
    show(lambda: {"input": str(table), **from_file.facts(), **found.to_dict()}, found.print, as_json, quiet)
    from_file.say(as_json, quiet)
