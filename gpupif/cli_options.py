"""What several commands of the command line share."""

from __future__ import annotations

import csv
import io
from typing import Annotated

import typer

from .errors import InputError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


def as_names(text: str | None, argument: str = "columns") -> list[str] | None:
    """Names separated by commas; one with a comma in it stands in double quotes. argument: what errors call it."""
    if text is None:
        return None
    lines = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True))
    if len(lines) > 1:
        raise InputError(f"{argument}: expected names separated by commas, got a line break in {text!r}.")
    names = [name.strip() for name in lines[0]] if lines else []
    if "" in names and len(names) > 1:
        raise InputError(f"{argument}: expected names separated by commas, got a comma too many in {text!r}.")
    return names
