"""The command `gpupif suda`: each parameter of its function is an option, as Typer has it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from . import options
from .option_values import FileRoles, as_names, check_goes_with
from .options import ClusterOptions, option, output_option, table_option
from .printing import interruption

MissingInSets = Annotated[
    str,
    table_option(
        "category|ignore|wildcard|error",
        "Missing values: one more value, none that tells rows apart (as in sdcMicro), any value, or refuse.",
    ),
]


def suda(
    table: options.Table,
    columns: str | None = option("A,B", "The key variables. Default: all."),
    roles: options.RolesFile = None,
    max_size: int | None = option("K", "Sets of up to K columns are searched. Default: 3, or all of fewer columns."),
    sampling_fraction: float | None = table_option(
        "0.01", "Share of the population that TABLE holds: DIS-SUDA scores."
    ),
    top: int = option("N", "How many of the riskiest rows to list.", default=10),
    output: Path | None = output_option(
        None, "Scores of all rows, in order: .parquet, .csv or .feather.", "-o", "--output"
    ),
    contributions: bool = output_option(
        None, "With --output: also what part of each score comes from each column.", "--contributions", default=False
    ),
    compression: options.Compression = None,
    overwrite: options.Overwrite = False,
    weights: options.SamplingWeights = None,
    missing: MissingInSets = "category",
    device: options.Device = None,
    *,
    shared: ClusterOptions,
) -> None:
    """Find special uniques: rows of TABLE that few of their values single out, and their SUDA scores."""
    shared.check(table)

    from ..io.write import check_output
    from ..marginals.request import CountRequest
    from ..special_uniques.suda import suda as find_suda
    from ..utils.validation import whole_number

    top = whole_number("top", top, "rows")
    check_goes_with("--output", output, contributions=contributions, overwrite=overwrite, compression=compression)
    names = as_names(columns)
    from_file = FileRoles(roles, table, shared.sep, [*(names or ()), weights])
    names = from_file.quasi_identifiers("columns", names)
    if missing != "wildcard" and sampling_fraction is None:
        # Weights are for DIS scores. Wildcards have none, and a sampling fraction takes the place of weights: then the
        # weights of a file of roles are left out.
        weights = from_file.weights(weights)
    find = partial(
        find_suda,
        max_size=max_size,
        columns=names,
        weights=weights,
        missing=missing,
        sampling_fraction=sampling_fraction,
        contributions=contributions,
    )
    with shared.configured(device, compression=compression):
        if output is not None:
            check_output(output, overwrite)
        found = shared.find(find, table, CountRequest(names, weights).pick)
        if output is not None:
            found.write(output, overwrite)
            interruption.left = f"the scores are complete: {output}"
    summary = found.summary(top)
    files = {"input": str(table)} if output is None else {"input": str(table), "output": str(output)}
    facts = {"spilled_bytes": found.spilled_bytes, "seconds": found.seconds}
    verdict = {"verdict": summary.verdict(redact=True)}
    shared.show(lambda: {**files, **from_file.facts(), **verdict, **summary.to_dict(), **facts}, summary.print)
    shared.say_roles(from_file)
    if output is not None:
        shared.say(f"Scores written to {output}")
