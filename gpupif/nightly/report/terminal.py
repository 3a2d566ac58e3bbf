"""A run drawn for a terminal: a table of gates, what changed, and what the exit code says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from ...errors import printable
from ...utils.display import Heading, draw_line, draw_table
from . import words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

COLOURS = {"passed": "green", "failed": "red", "unknown": "yellow", "not applied": "cyan"}


def draw(document: Mapping[str, Any], before: Mapping[str, Any] | None, console: Console) -> None:
    """Draw the document of a run on a console of rich; before: that of the last good run before it."""
    draw_line(console, words.heading(document), "bold")
    if words.work(document):
        draw_line(console, words.work(document))
    if document["gates"]:
        console.print(gates_table(document))
    if document["rows"] is not None:
        lines = [*words.file_changes(document), *words.column_changes(document, before)]
        draw_line(console, f"{words.since(document)}{':' if lines else '.'}", "bold")
        for line in lines:
            draw_line(console, f"  {line}")
        changes = words.number_changes(document, before)
        if changes:
            headings = [Heading("", text=True), *map(Heading, ("before", "now", "change"))]
            console.print(draw_table("What changed", headings, changes))
    for note in document["notes"]:
        draw_line(console, f"Note: {note}", "yellow")
    draw_line(console, words.closing(document), f"bold {COLOURS.get(document['status'], 'red')}")


def gates_table(document: Mapping[str, Any]) -> Table:
    """The gates of a run, a line each."""
    names, lines = words.gates_table(document)
    shown = {"verdict": lambda said: Text(printable(said), COLOURS[said.partition(":")[0]])}
    headings = [Heading(name, name not in words.NUMBERS, show=shown.get(name, str)) for name in names]
    return draw_table("Gates", headings, lines)
