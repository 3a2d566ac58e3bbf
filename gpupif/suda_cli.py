"""The command `gpupif suda`."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from . import __version__
from .cli_options import Device, Json, Quiet, as_names


def suda(
    table: Annotated[
        Path,
        typer.Argument(help="Parquet, CSV or Feather file, folder of Parquet, or 'data/**/*.csv'.", show_default=False),
    ],
    columns: Annotated[str | None, typer.Option(metavar="A,B", help="The key variables. Default: all.")] = None,
    max_size: Annotated[int, typer.Option(metavar="K", help="Sets of up to K columns are searched.")] = 3,
    sampling_fraction: Annotated[
        float | None, typer.Option(metavar="0.01", help="Share of the population that TABLE holds: DIS-SUDA scores.")
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", help="How many of the riskiest rows to list.")] = 10,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Scores of all rows, in order: .parquet, .csv or .feather."),
    ] = None,
    contributions: Annotated[
        bool, typer.Option("--contributions", help="With -o: also what part of each score comes from each column.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an output that exists.")] = False,
    missing: Annotated[str, typer.Option(metavar="category|error", help="Missing values.")] = "category",
    sep: Annotated[
        str | None, typer.Option(metavar="CHARACTER", help="Separator of a CSV file. Default: found by itself.")
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option(metavar="2GiB", help="Memory to take; the table is then read in streams.")
    ] = None,
    temp: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="For temporary files. Default: the system's.")
    ] = None,
    device: Device = "auto",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find special uniques: rows of TABLE that few of their values single out, and their SUDA scores."""
    from .errors import InputError
    from .inputs import find_input
    from .special_uniques import check_top, find_suda
    from .writing import check_output

    if quiet:
        warnings.simplefilter("ignore")
    check_top(top)
    if output is not None:
        check_output(output, overwrite, find_input(table, sep).places)
    elif contributions:
        raise InputError("--contributions: goes with -o. Add that, or leave it out.")
    visible = False if quiet else None
    options = (missing, sampling_fraction, contributions, visible, memory_limit, temp, sep)
    found = find_suda(table, max_size, as_names(columns), *options, device=device)
    if output is not None:
        found.write(output, overwrite)
    summary = found.summary(top)
    if as_json:
        import json

        files = {"input": str(table)} if output is None else {"input": str(table), "output": str(output)}
        facts = {"spilled_bytes": found.spilled_bytes, "seconds": found.seconds}
        document = {"gpupif": __version__, **files, **summary.to_dict(), **facts}
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    elif not quiet:
        from rich.console import Console

        from .special_summary import print_suda

        print_suda(summary, Console(width=None if sys.stdout.isatty() else 140))
        if output is not None:
            typer.echo(f"Scores written to {output}")
