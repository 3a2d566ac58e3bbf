"""What several commands of the command line share."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from .errors import InputError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead, and nothing else.")]
PopulationLacks = Annotated[
    str, typer.Option(metavar="error|count", help="Rows that the population lacks: refuse, or count them in it.")
]
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


def as_distances(texts: Iterable[str]) -> dict[str, Any]:
    """COLUMN=WHAT, each, as what `distances=` takes; values in a file are known by their texts."""
    distances: dict[str, Any] = {}
    for text in texts:
        column, equals, what = text.rpartition("=")
        if not equals or not column:
            raise InputError(f"--distance: expected COLUMN=ordered, COLUMN=nominal or COLUMN=FILE.json; got {text!r}.")
        if column in distances:
            raise InputError(f"--distance: column {column!r} is named twice.")
        distances[column] = _read(Path(what)) if what.endswith(".json") else what
    return distances


def _read(path: Path) -> Any:
    """A list of values in order, or a hierarchy."""
    import json

    from .axes import TextOrder, TextTree

    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"--distance: {path}: {error.strerror or error}.") from None
    except ValueError as error:
        raise InputError(f"--distance: {path}: expected JSON in UTF-8; it is none: {error}.") from None
    if not isinstance(found, list | dict):
        raise InputError(f"--distance: {path}: expected a list of values in order, or a hierarchy; got {found!r:.60}.")
    return TextOrder(found) if isinstance(found, list) else TextTree(found)
