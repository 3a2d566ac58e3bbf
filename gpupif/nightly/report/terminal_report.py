"""The report of a run for a terminal: a table of gates, what changed, and what the exit code says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from ...errors import printable
from ...utils.display import Heading, draw_line, draw_table
from . import run_text

if TYPE_CHECKING:
    from rich.console import Console

COLOURS = {"passed": "green", "failed": "red", "unknown": "yellow", "not applied": "cyan"}


def draw(document: Mapping[str, Any], before: Mapping[str, Any] | None, console: Console) -> None:
    """Draw the document of a run on a console of rich. before: the document of the last good run before it."""
    draw_line(console, run_text.heading(document), "bold")
    if run_text.resources_used(document):
        draw_line(console, run_text.resources_used(document))
    if document["gates"]:
        names, rows = run_text.gates_table(document)
        shown = {"verdict": lambda verdict: Text(printable(verdict), COLOURS[verdict.partition(":")[0]])}
        headings = [Heading(name, name not in run_text.NUMBERS, show=shown.get(name, str)) for name in names]
        console.print(draw_table("Gates", headings, rows))
    if document["rows"] is not None:
        lines = [*run_text.file_changes(document), *run_text.column_changes(document, before)]
        draw_line(console, f"{run_text.since(document)}{':' if lines else '.'}", "bold")
        for line in lines:
            draw_line(console, f"  {line}")
        changes = run_text.number_changes(document, before)
        if changes:
            headings = [Heading("", text=True), *map(Heading, ("before", "now", "change"))]
            console.print(draw_table("What changed", headings, changes))
    for note in document["notes"]:
        draw_line(console, f"Note: {note}", "yellow")
    draw_line(console, run_text.closing(document), f"bold {COLOURS.get(document['status'], 'red')}")
