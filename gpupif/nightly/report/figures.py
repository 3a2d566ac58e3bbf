"""The numbers that are told of a run beside its gates, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..comparison.summary_figures import by_attacker, figures_of_table

# Of equivalence classes, as people call them.
NAMES = {"uniques": "unique rows", "rows_below": "rows below k", "share_below": "share below k"}


class Figure(NamedTuple):
    """A number of a run. unit: "rows", "bits", "share", ...; empty where it has none."""

    value: float
    unit: str


class Pif(NamedTuple):
    """A percentile of the row information gain. attacker: empty where there is only one."""

    attacker: str
    percentile: str
    bits: float


def figures(document: Mapping[str, Any]) -> dict[str, Figure]:
    """By name the numbers of a run that are known, in the order in which they are told."""
    found: dict[str, Figure] = {}
    if document["rows"] is not None:
        found["rows"] = Figure(document["rows"], "rows")
        found["columns"] = Figure(len(document["columns"]), "columns")
    if document["distinct_rows"] is not None:
        found["distinct rows"] = Figure(document["distinct_rows"], "rows")
    if document["files"]:
        found["files"] = Figure(len(document["files"]), "files")
    missing = [column["missing"] for column in document["columns"] if column["missing"] is not None]
    if missing:
        found["missing values"] = Figure(sum(missing), "values")
    for figure, value in figures_of_table(document["summary"], document["risk"]):
        if value is not None:
            of = "" if figure.attacker is None else f" against {figure.attacker}"
            found[NAMES.get(figure.name, figure.name.replace("_", " ")) + of] = Figure(value, figure.unit)
    return found


def pifs(summary: Mapping[str, Any] | None) -> list[Pif]:
    """The personal information factors of a summary, against each attacker where there are several."""
    return [
        Pif(attacker or "", percentile, bits)
        for attacker, one in by_attacker(summary).items()
        for percentile, bits in one.get("pif", {}).items()
        if bits is not None
    ]
