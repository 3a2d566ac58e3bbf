"""The Markdown report of a run (in GitHub's flavour), for the summaries that CI systems show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import printable
from . import run_text

# Signs that Markdown reads as more than text anywhere in a line; no line begins with text from outside.
SPECIAL = re.compile(r"([\\`*_{}\[\]|~$#])")
SIGNS = {"passed": "✅", "failed": "❌", "unknown": "⚠️", "not applied": "⏸️"}


def text(document: Mapping[str, Any], before: Mapping[str, Any] | None) -> str:
    """Return the report of a run. before: the document of the last good run before it, None if there is none."""
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
