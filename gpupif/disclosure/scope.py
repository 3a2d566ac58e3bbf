"""What the measures of a table are with sampling weights, and where missing values match every value."""

from __future__ import annotations

from typing import NamedTuple

from .models import MODELS


class Scope(NamedTuple):
    """A measure of `gpupif.risk`, or a part of what it gives; undefined: why it is refused with wildcards, or ""."""

    measure: str
    weights: str
    wildcards: str
    undefined: str = ""


ROWS = "counts rows, whatever their weights"
SHARES_OF_VALUES = "shares of values are of weights"
NO_CLASSES = "classes that overlap cannot be counted, nor a mean be taken over them"
SIMPLE_SAMPLE = "it takes a simple random sample, of rows that all stand for as many people"


def scope() -> list[Scope]:
    """A row for each measure, the disclosure measures of sensitive attributes first."""
    return [
        *(Scope(model.name, model.weights, model.wildcards) for model in MODELS.values()),
        Scope("uniques, rows_below, discernibility", ROWS, "by how many rows match each row"),
        Scope("prosecutor, marketer", ROWS, "1 / the rows that match a row"),
        Scope("classes, average_size, classes_below", ROWS, "", NO_CLASSES),
        Scope(
            "estimated",
            "of a class of f rows whose weights sum to F: 1 / F, and Benedetti & Franconi's individual risk",
            "f and F are of the rows that match a row",
        ),
        Scope("groups", f"rows are counted, {SHARES_OF_VALUES}", "classes of each combination of quasi-identifiers"),
        Scope(
            "population",
            ROWS,
            "1 / the rows of the population that match a row, at least itself; `classes` and the journalist's average, "
            "which takes their mean size, are not defined",
        ),
        Scope("uniques in the population", f"not defined: {SIMPLE_SAMPLE}", "", NO_CLASSES),
    ]
