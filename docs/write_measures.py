"""Writes the tables of measures.md from what gpupif says of its measures: `python docs/write_measures.py`.

With --print the page goes to standard output, and nothing is written.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gpupif.disclosure.models import MODELS
from gpupif.disclosure.scope import Scope, scope

PAGE = Path(__file__).with_name("measures.md")
COLUMNS = ("name", "unit", "range", "meaning", "source", "example")


def registry() -> dict[str, list[dict[str, Any]]]:
    """All measures, of cells and of tables, as `gpupif measures --json` has them."""
    listed = subprocess.run(
        [sys.executable, "-m", "gpupif", "measures", "--json"], check=True, capture_output=True, encoding="utf-8"
    )
    found: dict[str, list[dict[str, Any]]] = json.loads(listed.stdout)
    return found


def tables() -> dict[str, str]:
    """The tables of the page, by the name that their marks have."""
    found = {part: table(COLUMNS, map(_cells, measures)) for part, measures in registry().items()}
    return found | {"weights and wildcards": table(("measure", "with weights", "with wildcards"), map(_scope, scope()))}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "".join(f"| {' | '.join(row)} |\n" for row in (heads, ["---"] * len(heads), *rows))


def _scope(row: Scope) -> list[str]:
    name = f"`{row.measure}`" if row.measure in MODELS else row.measure
    return [name, row.weights, row.wildcards or f"not defined: {row.undefined}"]


def _cells(measure: dict[str, Any]) -> list[str]:
    example = "" if measure["example"] is None else f"{measure['example']:.7g}"
    texts = [measure[key].replace("|", r"\|").replace("*", r"\*") for key in COLUMNS[1:-1]]
    return [f"`{measure['name']}`", *texts, example]


def page() -> str:
    """The page with the tables of the registry between its marks."""
    text = PAGE.read_text("utf-8")
    for part, written in tables().items():
        begin, end = f"<!-- begin: {part} -->\n", f"<!-- end: {part} -->\n"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise SystemExit(f"{PAGE}: expected {begin.strip()} and {end.strip()} once each, around the table.")
        before, after = text.split(begin)[0], text.split(end)[1]
        text = f"{before}{begin}{written}{end}{after}"
    return text


if __name__ == "__main__":
    if "--print" in sys.argv[1:]:
        sys.stdout.buffer.write(page().encode())
    else:
        PAGE.write_text(page(), "utf-8")
