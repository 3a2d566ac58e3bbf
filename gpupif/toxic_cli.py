"""The command `gpupif toxic`."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from . import __version__
from .cli_options import Json, Quiet, as_names


def toxic(
    table: Annotated[
        Path,
        typer.Argument(help="Parquet, CSV or Feather file, folder of Parquet, or 'data/**/*.csv'.", show_default=False),
    ],
    size: Annotated[int, typer.Option(metavar="2|3", help="Pairs or triples of columns.")] = 2,
    columns: Annotated[str | None, typer.Option(metavar="A,B", help="Columns to look at. Default: all.")] = None,
    top: Annotated[int, typer.Option(metavar="N", help="How many pairs of values to list.")] = 20,
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
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rank pairs of columns of TABLE by what they tell together, and list the values far rarer than their parts."""
    from .toxic import find_toxic

    if quiet:
        warnings.simplefilter("ignore")
    visible = False if quiet else None
    found = find_toxic(table, size, as_names(columns), top, missing, visible, memory_limit, temp, sep)
    if as_json:
        import json

        document = {"gpupif": __version__, "input": str(table), **found.to_dict()}
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    elif not quiet:
        from rich.console import Console

        from .toxic_report import print_toxic

        print_toxic(found, Console(width=None if sys.stdout.isatty() else 140))
