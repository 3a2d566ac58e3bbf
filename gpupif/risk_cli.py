"""The command `gpupif risk`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from . import __version__
from .cli_options import Json, Quiet, as_distances, as_names
from .errors import InputError


def risk(
    table: Annotated[
        Path,
        typer.Argument(help="Parquet, CSV or Feather file, folder of Parquet, or 'data/**/*.csv'.", show_default=False),
    ],
    quasi_identifiers: Annotated[
        str, typer.Option(metavar="A,B", help="Columns that an attacker may know of a person.", show_default=False)
    ],
    sensitive: Annotated[
        str | None, typer.Option(metavar="C,D", help="Sensitive attributes. Default: only sizes of classes.")
    ] = None,
    models: Annotated[
        str | None, typer.Option(metavar="M,M", help="Disclosure measures, see gpupif measures. Default: all.")
    ] = None,
    l: Annotated[  # noqa: E741 (the name that the measure has)
        int | None, typer.Option("--l", metavar="L", help="Of recursive (c,l)-diversity. Default: the distinct l.")
    ] = None,
    distance: Annotated[
        list[str] | None,
        typer.Option(
            metavar="C=ordered|nominal|FILE.json",
            help="Of t-closeness; in the file a list of values in order, or a hierarchy, "
            '{"value": ["part of", ...]}; may be repeated. Default: numbers and dates are ordered.',
        ),
    ] = None,
    k: Annotated[int, typer.Option("--k", metavar="K", help="Classes of fewer rows are counted apart.")] = 5,
    threshold: Annotated[
        float | None, typer.Option(metavar="0.2", help="A higher risk counts as at risk. Default: 1/k.")
    ] = None,
    groups: Annotated[int, typer.Option(metavar="N", help="How many homogeneous classes to list.")] = 10,
    population: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The population that TABLE is a part of: journalist risk.")
    ] = None,
    sampling_fraction: Annotated[
        float | None, typer.Option(metavar="0.01", help="Share of the population that TABLE is a random sample of.")
    ] = None,
    population_size: Annotated[
        int | None, typer.Option(metavar="N", help="People in that population, instead of --sampling-fraction.")
    ] = None,
    missing: Annotated[str, typer.Option(metavar="category|error", help="Missing values.")] = "category",
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="Where to compute.")] = "auto",
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
    """Say how far TABLE discloses identities and sensitive attributes: k, l, t and more, at once."""
    from .risks.disclosure import find_risk

    if quiet:
        warnings.simplefilter("ignore")
    attributes = as_names(sensitive, "sensitive")
    found = find_risk(
        table,
        as_names(quasi_identifiers, "quasi_identifiers"),
        attributes,
        models=as_names(models, "models"),
        l_values=l,
        distance=_distances(distance or (), attributes or ()),
        k=k,
        threshold=threshold,
        groups=groups,
        population=population,
        sampling_fraction=sampling_fraction,
        population_size=population_size,
        missing=missing,
        device=device,
        progress=False if quiet else None,
        sep=sep,
        memory_limit=memory_limit,
        temp=temp,
    )
    if as_json:
        import json

        document = {"gpupif": __version__, "input": str(table), **found.to_dict()}
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    elif not quiet:
        from rich.console import Console

        from .risks.report import print_risk

        print_risk(found, Console(width=None if sys.stdout.isatty() else 140))


def _distances(texts: Iterable[str], attributes: Collection[str]) -> dict[str, Any] | None:
    """As `as_distances`; attributes: the sensitive ones."""
    distances = as_distances(texts)
    for column in distances:
        if column not in attributes:
            raise InputError(f"--distance: column {column!r} is not among the sensitive attributes (--sensitive).")
    return distances or None
