"""Write the tables of measures.md, combinations.md, nightly.md and treatments.md from gpupif's own descriptions.

`python docs/write_measures.py` writes the pages; with --print FILE that page goes to standard output, and nothing is
written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from gpupif.disclosure.models import MODELS
from gpupif.disclosure.risk import NO_CLASSES, SIMPLE_SAMPLE
from gpupif.utils.refused_combinations import REFUSED_COMBINATIONS

DOCS = Path(__file__).parent
COLUMNS = ("name", "unit", "range", "meaning", "source", "example")
# The measures of cells and rows by purpose: the name of a table in measures.md, and its rows.
CELL_MEASURES = {
    "learnt": ("cig", "wcig", "csf", "total_variation", "jensen_shannon", "hellinger", "renyi_n", "emd"),
    "own value": (
        "posterior",
        "prior",
        "information_content",
        "pointwise_information",
        "relative_gain",
        "enhanced_gain",
        "log_ratio",
    ),
    "identity": ("class_size", "unique", "reidentification_risk", "individual_risk"),
    "shared": (
        "cohort_size",
        "distinct_values",
        "entropy",
        "recursive_n",
        "highest_relative_gain",
        "highest_enhanced_gain",
        "highest_log_ratio",
    ),
}
ROWS = "counts rows, whatever their weights"


def registry() -> dict[str, list[dict[str, Any]]]:
    """Return all measures, of cells and of tables, as `gpupif measures --json` lists them."""
    listed = subprocess.run(
        [sys.executable, "-m", "gpupif", "measures", "--json"], check=True, capture_output=True, encoding="utf-8"
    )
    found: dict[str, list[dict[str, Any]]] = json.loads(listed.stdout)
    return found


def measures_tables() -> dict[str, str]:
    """Return the tables of measures.md, by the name in their marks."""
    listed = registry()
    cells = {measure["name"]: measure for measure in listed.pop("cells")}
    tables = {part: table(COLUMNS, map(_cells, measures)) for part, measures in listed.items()}
    for purpose, names in CELL_MEASURES.items():
        tables[purpose] = table(COLUMNS, [_cells(cells.pop(name)) for name in names])
    if cells:
        raise SystemExit(f"CELL_MEASURES lacks {', '.join(cells)}: name the purpose of each measure.")
    return tables | {"weights and wildcards": table(("measure", "with weights", "with wildcards"), scopes())}


def combinations_tables() -> dict[str, str]:
    """Return the tables of combinations.md, by the name in their marks."""
    heads = ("option", "not defined for", "because")
    return {"undefined": table(heads, [(f"`{one.option}`", one.measures, one.why) for one in REFUSED_COMBINATIONS])}


def nightly_tables() -> dict[str, str]:
    """Return the tables of nightly.md by the name in their marks: configuration keys, gate kinds, record views."""
    from gpupif.nightly.configuration.settings import (
        CountTableSettings,
        GateSettings,
        Section,
        Settings,
        WebhookSettings,
    )
    from gpupif.nightly.gates.gate_kinds import GATES
    from gpupif.nightly.record.run_documents import SCHEMA, VIEWS

    fields = Settings.model_fields
    sections = {name: field.annotation for name, field in fields.items() if name != "gates"}
    sections |= {"gates": GateSettings, "count tables": CountTableSettings, "webhooks": WebhookSettings}
    tables = {}
    for name, section in sections.items():
        assert isinstance(section, type)
        assert issubclass(section, Section)
        keys = [
            (f"`{key}`", _default(field), _escaped(field.description or ""))
            for key, field in section.model_fields.items()
        ]
        tables[name] = table(("key", "default", "meaning"), keys)
    kinds = [
        (f"`{kind.name}`", _keys(kind.needs), _keys(kind.takes), _escaped(kind.unit), _escaped(kind.meaning))
        for kind in GATES.values()
        if kind.name not in MODELS
    ]
    models = [kind.name for kind in GATES.values() if kind.name in MODELS]
    meaning = "[measures of tables](measures.md#of-tables), of the worst sensitive column or of `column` (not of `k`)"
    kinds.append((_keys(models), "", "`column`", "of the measure", meaning))
    tables["gate kinds"] = table(("kind", "needs", "may have", "unit", "measures"), kinds)
    with contextlib.closing(sqlite3.connect(":memory:")) as record:
        record.executescript(";".join(SCHEMA))
        columns = {name: [row[1] for row in record.execute(f"PRAGMA table_info({name})")] for name in VIEWS}
    tables["record"] = table(("view", "columns"), [(f"`{name}`", _keys(columns[name])) for name in VIEWS])
    return tables


def treatments_tables() -> dict[str, str]:
    """Return the tables of treatments.md by the name in their marks: treatments and hierarchies, with their keys."""
    from gpupif.hierarchies.open import KINDS
    from gpupif.treatment.plan import TREATMENTS

    treatments = [
        (f"`{word}`", f"`{kind.__name__}`", *_own_keys(kind), _first_sentence(kind))
        for word, kind in TREATMENTS.items()
    ]
    hierarchies = [(*_own_keys(kind, ("column", "file")), _first_sentence(kind)) for kind in KINDS.values()]
    return {
        "treatments": table(("do", "in Python", "needs", "may have, and defaults", "what it does"), treatments),
        "hierarchies": table(("key", "may have, and defaults", "meaning"), hierarchies),
    }


def options_tables() -> dict[str, str]:
    """Return the options of each command, by the name in their marks; those of several commands are said once."""
    from gpupif.cli.main import NAMES
    from gpupif.cli.option_table import rows_of, sections

    heads = ("option", "value", "default", "does")
    groups = [line for name, (_, lines) in sections().items() if name.startswith("+") for line in lines]
    rows = {line: row for name in NAMES for line, row in zip(sections()[name][1], rows_of(name), strict=True)}
    # What groups say differently of an option is said at each command that has it.
    several = Counter(rows[line].name for line in dict.fromkeys(groups))
    groups = [line for line in groups if several[rows[line].name] == 1]
    texts = []
    for name in NAMES:
        lines = sections()[name][1]
        own = [_option(rows[line]) for line in lines if line not in groups]
        more = [f"`{rows[line].option}`" for line in lines if line in groups and rows[line].typed]
        also = f"{'Also' if own else 'It has'} {', '.join(more)}, [as other commands](#options-of-many-commands).\n"
        texts += [f"### gpupif {name}\n", table(heads, own) if own else "", also]
    return {
        "options": table(heads, dict.fromkeys(_option(rows[line]) for line in groups if rows[line].typed)),
        "commands": "\n".join(filter(None, texts)),
    }


def _option(row: Any) -> tuple[str, str, str, str]:
    """Return what is said of an option or argument."""
    value = "" if row.metavar is None else f"`{_escaped(row.metavar)}`"
    default = "required" if row.default is ... else row.shown or row.default
    said = "" if default is None or default is False else str(default)
    return ", ".join(f"`{name}`" for name in row.typed or [row.name.upper()]), value, said, _escaped(row.help)


def _own_keys(kind: type[Any], without: Sequence[str] = ()) -> tuple[str, str]:
    """Return the required fields of a dataclass, and the others with the defaults that are not None."""
    fields = [field for field in dataclasses.fields(kind) if field.name not in without]
    needed = [field.name for field in fields if field.default is dataclasses.MISSING]
    others = [
        field.name if field.default is None else f"{field.name} = {json.dumps(field.default, default=list)}"
        for field in fields
        if field.name not in needed
    ]
    return _keys(needed), _keys(others)


def _first_sentence(kind: type[Any]) -> str:
    paragraph = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
    parts = f"{paragraph.split('. ')[0].rstrip('.')}.".replace("``", "`").split("`")
    # Between backticks nothing is escaped but what would end a cell.
    plain = [part.replace("|", r"\|") if place % 2 else _escaped(part) for place, part in enumerate(parts)]
    return "`".join(plain)


def _default(field: Any) -> str:
    """Return the default of a key as TOML has it, empty if it is None, or a note that the key is required."""
    if field.is_required():
        return "has to be there"
    return "" if field.default is None else f"`{json.dumps(field.default)}`"


def _keys(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _escaped(text: str) -> str:
    return text.replace("|", r"\|").replace("*", r"\*")


PAGES: dict[str, Callable[[], dict[str, str]]] = {
    "reference/measures.md": measures_tables,
    "explanation/combinations.md": combinations_tables,
    "reference/nightly.md": nightly_tables,
    "reference/treatments.md": treatments_tables,
    "reference/command-line.md": options_tables,
}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "".join(f"| {' | '.join(row)} |\n" for row in (heads, ["---"] * len(heads), *rows))


def scopes() -> list[Sequence[str]]:
    """List how each measure of `gpupif.risk` treats sampling weights and wildcards, attribute measures first."""
    no_classes = f"not defined: {NO_CLASSES}"
    return [
        *((f"`{model.name}`", model.weights, model.wildcards) for model in MODELS.values()),
        ("uniques, rows_below, discernibility", ROWS, "by how many rows match each row"),
        ("prosecutor, marketer", ROWS, "1 / the rows that match a row"),
        ("classes, average_size, classes_below", ROWS, no_classes),
        (
            "estimated",
            "of a class of f rows whose weights sum to F: 1 / F, and Benedetti & Franconi's individual risk",
            "f and F are of the rows that match a row",
        ),
        (
            "groups",
            "rows are counted, shares of values are of weights",
            "classes of each combination of quasi-identifiers",
        ),
        (
            "population",
            ROWS,
            "1 / the rows of the population that match a row, at least itself; `classes` and the journalist's average, "
            "which takes their mean size, are not defined",
        ),
        ("presence", ROWS, "not defined: a person may be of several classes, whose shares are then no probability"),
        ("games", ROWS, "by how many rows match each row"),
        ("uniques in the population", f"not defined: {SIMPLE_SAMPLE}", no_classes),
    ]


def _cells(measure: dict[str, Any]) -> list[str]:
    example = "" if measure["example"] is None else f"{measure['example']:.7g}"
    texts = [_escaped(measure[key]) for key in COLUMNS[1:-1]]
    return [f"`{measure['name']}`", *texts, example]


def page(name: str) -> str:
    """Return a page with its tables between their marks."""
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
