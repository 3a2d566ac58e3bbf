"""Figures out of the summary and the risk of a run, as the record has them: plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Document = Mapping[str, Any]

# Of equivalence classes, what a run is compared by, with its unit.
CLASS_FIGURES = {
    "k": "rows",
    "uniques": "rows",
    "unique_share": "share",
    "rows_below": "rows",
    "share_below": "share",
}


class Figure(NamedTuple):
    """A number of a run. attacker: None where there is one without a name; column: None of the whole table."""

    name: str
    unit: str
    attacker: str | None = None
    column: str | None = None


def by_attacker(summary: Document | None) -> dict[str | None, Document]:
    """The summary of each attacker; None for one without a name; nothing of no summary."""
    if summary is None:
        return {}
    return dict(summary["attackers"]) if "attackers" in summary else {None: summary}


def pif_of(summary: Document | None, percentile: int) -> float | None:
    """A PIF in bits, that against the worst attacker; None where it is not known."""
    several = [one.get("pif", {}).get(str(percentile)) for one in by_attacker(summary).values()]
    return max((bits for bits in several if bits is not None), default=None)


def figures_of_table(summary: Document | None, risk: Document | None) -> Iterator[tuple[Figure, float | None]]:
    """What is said of a whole table: PIF by attacker, equivalence classes, and the worst of sensitive attributes."""
    for attacker, one in by_attacker(summary).items():
        for percentile, bits in one.get("pif", {}).items():
            yield Figure(f"PIF {percentile}", "bits", attacker), bits
    if risk is not None:
        for name, unit in CLASS_FIGURES.items():
            yield Figure(name, unit), risk["classes"][name]
        for name, value in risk.get("worst", {}).items():
            if name != "k":
                yield Figure(name, "", None), value


def figures_of_columns(summary: Document | None) -> Iterator[tuple[Figure, float | None]]:
    """What is said of each column, by attacker."""
    for attacker, one in by_attacker(summary).items():
        for facts in one["columns"]:
            for name, value in facts.items():
                if name != "column":
                    yield Figure(name, "", attacker, str(facts["column"])), value
