"""The report of a run for people: drawn on a terminal, or as Markdown in GitHub's flavour, which CI systems show.

It has the table of gates, what changed, and what the exit code says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from ...errors import printable
from ...utils.display import Heading, draw_line, draw_table
from . import run_text

if TYPE_CHECKING:
    from rich.console import Console

COLOURS = {"passed": "green", "failed": "red", "unknown": "yellow", "not applied": "cyan"}
SIGNS = {"passed": "✅", "failed": "❌", "unknown": "⚠️", "not applied": "⏸️"}
# Signs that Markdown reads as more than text anywhere in a line; no line begins with text from outside.
SPECIAL = re.compile(r"([\\`*_{}\[\]|~$#])")


def draw(document: Mapping[str, Any], before: Mapping[str, Any] | None, console: Console) -> None:
    """Draw the document of a run on a console of rich. before: the document of the last good run before it."""
    draw_line(console, run_text.heading(document), "bold")
    limited = run_text.limits_risk(document["gates"])
    colour = "red" if document["exit_code"] else COLOURS["passed" if limited else "unknown"]
    draw_line(console, run_text.closing(document), f"bold {colour}")
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


def markdown(document: Mapping[str, Any], before: Mapping[str, Any] | None) -> str:
    """Return the report of a run as Markdown.

    before: the document of the last good run before it, None if there is none.
    """
    parts = [f"## {escaped(run_text.heading(document))}", f"**{escaped(run_text.closing(document))}**"]
    parts += [escaped(run_text.resources_used(document))]
    if document["gates"]:
        names, lines = run_text.gates_table(document)
        signs = [SIGNS[gate["verdict"]] for gate in document["gates"]]
        rows = [[sign, *line] for sign, line in zip(signs, lines, strict=True)]
        parts += ["### Gates", _table(["", *names], rows)]
    if document["rows"] is not None:
        parts.append(f"### {escaped(run_text.since(document))}")
        parts.append(_list([*run_text.file_changes(document), *run_text.column_changes(document, before)]))
        changes = run_text.number_changes(document, before)
        if changes:
            parts.append(_table(["", "before", "now", "change"], changes))
    parts.append(_list(f"Note: {note}" for note in document["notes"]))
    return "\n\n".join(filter(None, parts)) + "\n"


def escaped(text: str) -> str:
    """Return a text such that Markdown shows it as it is, in one line."""
    plain = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return SPECIAL.sub(r"\\\1", plain)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    marks = ["---:" if name in run_text.NUMBERS else ":---" for name in headings]
    lines = [headings, marks, *([escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)
