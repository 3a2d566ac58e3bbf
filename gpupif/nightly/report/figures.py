"""The numbers that are told of a run beside its gates, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Figure(NamedTuple):
    """A number of a run. unit: "rows", "bits", "share", ...; empty where it has none."""

    value: float
    unit: str


class Pif(NamedTuple):
    """A percentile of the row information gain. attacker: None where there is only one."""

    attacker: str | None
    percentile: str
    bits: float


def figures(document: Mapping[str, Any]) -> dict[str, Figure]:
    """By name the numbers of a run that are known, in the order in which they are told."""
    found: dict[str, Figure] = {}
    if document["rows"] is not None:
        found["rows"] = Figure(document["rows"], "rows")
        found["columns"] = Figure(len(document["columns"]), "columns")
        found["missing values"] = Figure(sum(column["missing"] for column in document["columns"]), "values")
    if document["distinct_rows"] is not None:
        found["distinct rows"] = Figure(document["distinct_rows"], "rows")
    if document["files"]:
        found["files"] = Figure(len(document["files"]), "files")
    for attacker, percentile, bits in pifs(document["summary"]):
        of = "" if attacker is None else f", attacker {attacker}"
        found[f"PIF {percentile}{of}"] = Figure(bits, "bits")
    return found | dict(_of_classes(document["risk"]))


def pifs(summary: Mapping[str, Any] | None) -> list[Pif]:
    """The personal information factors of a summary, of each attacker where there are several."""
    if summary is None:
        return []
    several: Mapping[str | None, Any] = summary.get("attackers", {None: summary})
    return [
        Pif(attacker, percentile, bits)
        for attacker, one in several.items()
        for percentile, bits in one.get("pif", {}).items()
        if bits is not None
    ]


def _of_classes(risk: Mapping[str, Any] | None) -> Iterator[tuple[str, Figure]]:
    """What `DisclosureRisk.to_dict` says of equivalence classes and of the worst sensitive attribute."""
    if risk is None:
        return
    classes = risk["classes"]
    wanted = classes["wanted_k"]
    named = {
        "k": ("k", "rows"),
        "unique rows": ("uniques", "rows"),
        f"classes below {wanted} rows": ("classes_below", "classes"),
        f"rows in classes below {wanted} rows": ("rows_below", "rows"),
    }
    for name, (key, unit) in named.items():
        if classes[key] is not None:
            yield name, Figure(classes[key], unit)
    for name, value in (risk["worst"] or {}).items():
        if name != "k" and value is not None:
            yield name, Figure(value, "")
