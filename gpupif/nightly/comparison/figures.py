"""The figures of a run, its numbers by name, out of its summary, its risk and its document: plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Document = Mapping[str, Any]

# The kinds of gates on the table itself, and not on a risk: the kinds with `Part.INPUT`.
INPUT_KINDS = ("rows", "columns", "missing_share", "new_values")
# The figures of equivalence classes that runs are compared by, each with its unit.
CLASS_FIGURES = {
    "k": "rows",
    "uniques": "rows",
    "unique_share": "share",
    "rows_below": "rows",
    "share_below": "share",
}
# Their names in reports, if these are others.
SHOWN_NAMES = {"uniques": "unique rows", "rows_below": "rows below k", "share_below": "share below k"}


class Figure(NamedTuple):
    """The name of a number of a run.

    unit: "rows", "bits", "share", ...; empty if it has none. attacker: None if there is one without a name.
    column: None for a number of the whole table.
    """

    name: str
    unit: str
    attacker: str | None = None
    column: str | None = None


def shown_name(name: str) -> str:
    """Return the name of a figure in reports."""
    return SHOWN_NAMES.get(name, name.replace("_", " "))


class Amount(NamedTuple):
    """A number with its unit; empty if it has none."""

    value: float
    unit: str


def by_attacker(summary: Document | None) -> dict[str | None, Document]:
    """Return the summary of each attacker, by name, None for one without a name; nothing without a summary."""
    if summary is None:
        return {}
    return dict(summary["attackers"]) if "attackers" in summary else {None: summary}


def pif_of(summary: Document | None, percentile: int) -> float | None:
    """Return a PIF in bits, against the worst attacker; None if it is not known."""
    pifs = [document.get("pif", {}).get(str(percentile)) for document in by_attacker(summary).values()]
    return max((bits for bits in pifs if bits is not None), default=None)


def figures_of_table(summary: Document | None, risk: Document | None) -> Iterator[tuple[Figure, float | None]]:
    """Yield the figures of a whole table: PIF by attacker, equivalence classes, the worst of sensitive attributes."""
    for attacker, document in by_attacker(summary).items():
        for percentile, bits in document.get("pif", {}).items():
            yield Figure(f"PIF {percentile}", "bits", attacker), bits
    if risk is not None:
        for name, unit in CLASS_FIGURES.items():
            yield Figure(name, unit), risk["classes"][name]
        for name, value in risk.get("worst", {}).items():
            if name != "k":
                yield Figure(name, ""), value


def figures_of_columns(summary: Document | None) -> Iterator[tuple[Figure, float | None]]:
    """Yield the figures of each column, by attacker."""
    for attacker, document in by_attacker(summary).items():
        for facts in document["columns"]:
            for name, value in facts.items():
                if name != "column":
                    yield Figure(name, "", attacker, str(facts["column"])), value


def amounts(document: Document) -> dict[str, Amount]:
    """Return the numbers of a run that are known, by name, in the order in which reports show them.

    document: of `RunOutcome.to_dict`.
    """
    found: dict[str, Amount] = {}
    if document["rows"] is not None:
        found["rows"] = Amount(document["rows"], "rows")
        found["columns"] = Amount(len(document["columns"]), "columns")
    if document["distinct_rows"] is not None:
        found["distinct rows"] = Amount(document["distinct_rows"], "rows")
    if document["files"]:
        found["files"] = Amount(len(document["files"]), "files")
    missing = [column["missing"] for column in document["columns"] if column["missing"] is not None]
    if missing:
        found["missing values"] = Amount(sum(missing), "values")
    for figure, value in figures_of_table(document["summary"], document["risk"]):
        if value is not None:
            against = "" if figure.attacker is None else f" against {figure.attacker}"
            found[shown_name(figure.name) + against] = Amount(value, figure.unit)
    return found


def with_figures(document: Document, before: Document | None) -> dict[str, Any]:
    """Return the document of a run with its figures beside those of the last good run: what the JSON report has.

    before: the document of the last good run before it, None if there is none.
    """
    past = {} if before is None else amounts(before)
    figures = {
        name: {
            "value": amount.value,
            "unit": amount.unit,
            "before": past[name].value if name in past else None,
        }
        for name, amount in amounts(document).items()
    }
    return {**document, "figures": figures}
