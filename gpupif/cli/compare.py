"""The command `gpupif compare`: each parameter of its function is an option, as Typer has it, so there are many."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from . import options
from .options import FileRoles, as_distances, as_names, check_table, configured, show


def compare(
    before: Annotated[
        Path,
        typer.Argument(
            metavar="BEFORE", help="The table: Parquet, CSV or Feather file, or folder of Parquet.", show_default=False
        ),
    ],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The treated table.", show_default=False)],
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="plan.toml", help="The plan by which it was treated, or the record: levels, which rows went."
        ),
    ] = None,
    columns: Annotated[str | None, typer.Option(metavar="A,B", help="Columns to compare. Default: all.")] = None,
    quasi_identifiers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns that the attacker knows. Default: all that are not sensitive."),
    ] = None,
    sensitive: Annotated[
        str | None, typer.Option(metavar="C,D", help="Sensitive attributes: for l, t and homogeneous classes.")
    ] = None,
    roles: options.RolesFile = None,
    row_id: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Says which rows belong together. Default: their order, and the plan."),
    ] = None,
    distance: options.Distances = None,
    k: Annotated[
        int | None,
        typer.Option("--k", metavar="K", help="What n / classes is divided by. Default: rows of the smallest class."),
    ] = None,
    suppressed: Annotated[
        str,
        typer.Option(
            metavar="both|category|wildcard",
            help="Suppressed cells: a value of their own, anything, or both (the worse is reported).",
        ),
    ] = "both",
    linkage: Annotated[
        str,
        typer.Option(
            metavar="auto|exact|none|ROWS",
            help="Find rows again by the nearest row: where values were perturbed, of all rows, never, or of so many.",
        ),
    ] = "auto",
    seed: Annotated[int, typer.Option(metavar="N", help="Of the rows that are drawn for linkage.")] = 0,
    sep: options.Sep = None,
    device: options.Device = None,
    memory_limit: options.StreamMemory = None,
    temp: options.StreamTemp = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what a treatment of a table bought in risk and cost in utility, BEFORE and AFTER side by side."""
    from ..dask.client import Place

    for table in (before, after):
        check_table(table, sep, Place(None, None))
    given, known, attributes = (
        as_names(columns),
        as_names(quasi_identifiers, "quasi_identifiers"),
        as_names(sensitive, "sensitive"),
    )
    from_file = FileRoles(roles, before, sep, [*(known or ()), *(attributes or ()), row_id], given)
    if roles is not None:
        from_file.warn_of_weights()
        known = from_file.known("quasi-identifiers", known)
        attributes = from_file.take("sensitive", attributes, lambda found: found.sensitive)
        if given is None:
            given = [*(known or ()), *(attributes or ())]
    apart: dict[Hashable, Any] = dict(as_distances(distance or ()).items())
    with configured(quiet, device, memory_limit=memory_limit, temp=temp):
        from ..comparison.compare import compare as find
        from ..io.paths import find_input

        open_input = partial(find_input, sep=sep)
        found = find(
            open_input(before),
            open_input(after),
            plan,
            columns=given,
            quasi_identifiers=known,
            sensitive=attributes,
            row_id=row_id,
            distances=apart,
            k=k,
            suppressed=suppressed,
            linkage=_linkage(linkage),
            seed=seed,
        )
    tables = {"before": str(before), "after": str(after)}
    show(lambda: {**tables, **from_file.facts(), **found.to_dict()}, found.print, as_json, quiet)
    from_file.say(as_json, quiet)


def _linkage(text: str) -> str | int | None:
    """What `gpupif.compare` takes."""
    if text in ("auto", "exact"):
        return text
    if text == "none":
        return None
    if not text.isdecimal():
        raise InputError(f"--linkage: expected auto, exact, none or a number of rows, got {text!r}.")
    return int(text)
