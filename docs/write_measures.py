"""Writes the tables of measures.md and disclosure.md from what gpupif says of its measures.

`python docs/write_measures.py` writes both pages; with --print FILE that page goes to standard output, and nothing is
written.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from gpupif.disclosure.models import MODELS
from gpupif.disclosure.scope import Scope, scope
from gpupif.utils.undefined import undefined_table

DOCS = Path(__file__).parent
COLUMNS = ("name", "unit", "range", "meaning", "source", "example")


def registry() -> dict[str, list[dict[str, Any]]]:
    """All measures, of cells and of tables, as `gpupif measures --json` has them."""
    listed = subprocess.run(
        [sys.executable, "-m", "gpupif", "measures", "--json"], check=True, capture_output=True, encoding="utf-8"
    )
    found: dict[str, list[dict[str, Any]]] = json.loads(listed.stdout)
    return found


def measures_tables() -> dict[str, str]:
    """The tables of measures.md, by the name that their marks have."""
    found = {part: table(COLUMNS, map(_cells, measures)) for part, measures in registry().items()}
    return found | {"weights and wildcards": table(("measure", "with weights", "with wildcards"), map(_scope, scope()))}


def disclosure_tables() -> dict[str, str]:
    """The tables of disclosure.md, likewise."""
    return {"undefined": f"{undefined_table()}\n"}


PAGES: dict[str, Callable[[], dict[str, str]]] = {
    "measures.md": measures_tables,
    "disclosure.md": disclosure_tables,
}


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


def page(name: str) -> str:
    """A page with its tables between their marks."""
    text = (DOCS / name).read_text("utf-8")
    for part, written in PAGES[name]().items():
        begin, end = f"<!-- begin: {part} -->\n", f"<!-- end: {part} -->\n"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise SystemExit(f"{name}: expected {begin.strip()} and {end.strip()} once each, around the table.")
        before, after = text.split(begin)[0], text.split(end)[1]
        text = f"{before}{begin}{written}{end}{after}"
    return text


if __name__ == "__main__":
    if sys.argv[1:2] == ["--print"]:
        sys.stdout.buffer.write(page(sys.argv[2]).encode())
    else:
        for name in PAGES:
            (DOCS / name).write_text(page(name), "utf-8")
