"""A run as Markdown (of GitHub's flavour), for the summaries that CI systems show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ...errors import printable
from . import words
from .telling import Telling

# What Markdown would read as more than text, wherever it stands; no line begins with text of others.
SPECIAL = re.compile(r"([\\`*_{}\[\]|~$#])")
SIGNS = {"passed": "✅", "failed": "❌", "unknown": "⚠️", "not applied": "⏸️"}


def text(telling: Telling) -> str:
    """The whole document."""
    document, before = telling.document, telling.before
    parts = [f"## {escaped(words.heading(document))}", f"**{escaped(words.closing(document))}**"]
    parts += [escaped(words.work(document))]
    if document["gates"]:
        names, lines = words.gates_table(document)
        signs = [SIGNS[gate["verdict"]] for gate in document["gates"]]
        rows = [[sign, *line] for sign, line in zip(signs, lines, strict=True)]
        parts += ["### Gates", _table(["", *names], rows)]
    if document["rows"] is not None:
        parts.append(f"### {escaped(words.since(document))}")
        parts.append(_list([*words.file_changes(document), *words.column_changes(document, before)]))
        changes = words.number_changes(document, before)
        if changes:
            parts.append(_table(["", "before", "now", "change"], changes))
    parts.append(_list(f"Note: {note}" for note in document["notes"]))
    return "\n\n".join(filter(None, parts)) + "\n"


def escaped(text: str) -> str:
    """A text that Markdown shows as it is, in one line."""
    plain = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return SPECIAL.sub(r"\\\1", plain)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    marks = ["---:" if name in words.NUMBERS else ":---" for name in headings]
    lines = [headings, marks, *([escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)
