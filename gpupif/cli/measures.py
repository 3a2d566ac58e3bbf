"""The command `gpupif measures`."""

from __future__ import annotations

from typing import Any

import typer

from ..utils.display import json_text
from ..utils.printed_width import standard_output
from .options import Given

KEYS = ("name", "unit", "range", "meaning", "source")
EXAMPLE = (
    "Examples are of the table with the rows (g, a), (g, a), (g, a), (g, b), (h, a), (h, b), (h, c), (h, c): of the "
    "second cell of its first row, for an attacker who knows the first column; and of the table, for the first column "
    "as quasi-identifier and the second as sensitive. Among the rows of g, three of four are a; in the table a half is "
    "a, a quarter b and a quarter c."
)


def measures(given: Given) -> None:
    """List all measures, of cells and of tables: unit, range, meaning, source, and an example."""
    if given.as_json:
        typer.echo(json_text({"cells": of_cells(), "tables": of_tables()}))
        return
    from ..utils.display import Heading, draw_line, draw_table

    to = standard_output()
    titles = {
        "Of cells and rows: gpupif score --measures": of_cells(),
        "Of tables: gpupif risk --models": of_tables(),
    }
    headings = [*(Heading(key, text=True) for key in KEYS), Heading("example", show=_example)]
    for title, entries in titles.items():
        to.print(draw_table(title, headings, ([*entry.values()] for entry in entries)))
        to.print()
    draw_line(to, EXAMPLE)


def _example(value: float | None) -> str:
    return "" if value is None else f"{value:.7g}"


def of_cells() -> list[dict[str, Any]]:
    """Return all measures of cells; a family is one entry, with a letter in place of its number."""
    from ..measures import FAMILIES, MEASURES

    found = [_entry(measure) for measure in MEASURES.values()]
    for family in FAMILIES:
        entry = _entry(family.make(f"{family.prefix}n", float("nan")))
        meaning = entry["meaning"].replace("nan", "n") + f"; n: {family.expects}, in the example 2"
        example = family.make(f"{family.prefix}2", 2.0).example
        found.append({**entry, "meaning": meaning, "example": example})
    return found


def of_tables() -> list[dict[str, Any]]:
    """Return all measures of tables."""
    from ..disclosure.models import MODELS

    return [_entry(model) for model in MODELS.values()]


def _entry(measure: Any) -> dict[str, Any]:
    return {key: getattr(measure, key) for key in (*KEYS, "example")}
