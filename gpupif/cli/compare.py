"""The command `gpupif compare`: each parameter of its function is an option, as Typer has it."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UnmetError
from . import options
from .messages import UNMET, say_unmet, warnings_held
from .option_values import FileRoles, as_distances, as_names
from .options import ReadOptions, ReportFile, option


def compare(
    before: Annotated[
        Path,
        typer.Argument(
            metavar="BEFORE", help="The table: Parquet, CSV or Feather file, or folder of Parquet.", show_default=False
        ),
    ],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The treated table.", show_default=False)],
    plan: Path | None = option(
        "plan.toml", "The plan by which it was treated, or the record: levels, which rows went."
    ),
    columns: str | None = option("A,B", "Columns to compare. Default: all."),
    quasi_identifiers: str | None = option(
        "A,B", "Columns that the attacker knows. Default: all that are not sensitive."
    ),
    sensitive: str | None = option("C,D", "Sensitive attributes: for l, t and homogeneous classes."),
    roles: options.RolesFile = None,
    row_id: str | None = option("COLUMN", "Says which rows belong together. Default: their order, and the plan."),
    distance: options.Distances = None,
    k: int | None = option("K", "What n / classes is divided by. Default: rows of the smallest class.", "--k"),
    suppressed: str = option(
        "both|category|wildcard",
        "Suppressed cells: a value of their own, anything, or both (the worse is reported).",
        default="both",
    ),
    linkage: str = option(
        "auto|exact|none|ROWS",
        "Find rows again by the nearest row: where values were perturbed, of all rows, never, or of so many.",
        default="auto",
    ),
    seed: int = option("N", "Of the rows that are drawn for linkage.", default=0),
    numbers: str | None = option("A,B", "Columns of numbers to measure. Default: all that changed."),
    interval: float = option("0.05", "Half-width of intervals: standard deviations, and share of ranks.", default=0.05),
    weights: options.SamplingWeights = None,
    device: options.Device = None,
    report: options.Report = None,
    redact: options.Redact = False,
    overwrite: options.Overwrite = False,
    *,
    shared: ReadOptions,
) -> None:
    """Say what a treatment of a table bought in risk and cost in utility, BEFORE and AFTER side by side."""
    for table in (before, after):
        shared.check(table)
    to = ReportFile(report, overwrite, after, redact)
    given, known, attributes = (
        as_names(columns),
        as_names(quasi_identifiers, "quasi_identifiers"),
        as_names(sensitive, "sensitive"),
    )
    if plan is not None:
        from ..treatment.record import plan_of

        known, attributes = plan_of(plan).attacker(given, known, attributes)
    from_file = FileRoles(roles, before, shared.sep, [*(known or ()), *(attributes or ()), row_id, weights], given)
    if roles is not None:
        known = from_file.quasi_identifiers("quasi-identifiers", known)
        attributes = from_file.sensitive(attributes)
        weights = from_file.weights(weights)
        if given is None:
            given = from_file.scored(known, attributes)
    with warnings_held(), shared.configured(device):
        from ..comparison.compare import compare as find
        from ..io.paths import find_input

        open_input = partial(find_input, sep=shared.sep)
        found = find(
            open_input(before),
            open_input(after),
            plan,
            columns=given,
            quasi_identifiers=known,
            sensitive=attributes,
            row_id=row_id,
            distances=as_distances(distance) or {},
            k=k,
            suppressed=suppressed,
            linkage={"none": None}.get(linkage, int(linkage) if re.fullmatch(r"\d{1,20}", linkage) else linkage),
            seed=seed,
            numbers=as_names(numbers, "numbers"),
            interval=interval,
            weights=weights,
        )
        if found.unmet is not None:
            say_unmet(UnmetError(found.unmet).about(f"plan: {plan}", "plan: "))
    shared.report(found, from_file, to=to, before=before, after=after)
    if found.unmet is not None:
        raise typer.Exit(UNMET)
