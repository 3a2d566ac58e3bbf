"""The command `gpupif measures`."""

from __future__ import annotations

from typing import Any

import typer

from .cli_options import Json, console

KEYS = ("name", "unit", "range", "meaning", "source")


def measures(as_json: Json = False) -> None:
    """List all measures, of cells and of tables: unit, range, meaning and source."""
    if as_json:
        import json

        typer.echo(json.dumps({"cells": of_cells(), "tables": of_tables()}, indent=2, ensure_ascii=False))
        return
    from rich.table import Table

    to = console()
    titles = {
        "Of cells: gpupif score --measures": of_cells(),
        "Of tables: gpupif risk --models": of_tables(),
    }
    for title, entries in titles.items():
        table = Table(title=title, title_justify="left", header_style="bold")
        for key in KEYS:
            table.add_column(key, overflow="fold", no_wrap=key == "name")
        for entry in entries:
            table.add_row(*(entry[key] for key in KEYS))
        to.print(table)


def of_cells() -> list[dict[str, str]]:
    """All measures of cells; of each family one entry, whose name says what stands for its number."""
    from .measures import FAMILIES, MEASURES

    found = [_entry(measure) for measure in MEASURES.values()]
    for family in FAMILIES:
        entry = _entry(family.make(f"{family.prefix}n", float("nan")))
        found.append({**entry, "meaning": entry["meaning"].replace("nan", "n") + f"; n: {family.expects}"})
    return found


def of_tables() -> list[dict[str, str]]:
    """All measures of tables."""
    from .risks.models import MODELS

    return [_entry(model) for model in MODELS.values()]


def _entry(measure: Any) -> dict[str, str]:
    return {key: getattr(measure, key) for key in KEYS}
