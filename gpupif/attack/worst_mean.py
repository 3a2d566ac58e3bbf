"""The worst and the mean over attackers who know any few columns, as measures of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..measures import Measure

# In the order in which outputs have them.
FOLDS = ("worst", "mean")


def fold_of(measure: Measure, what: str) -> Measure:
    """What a cell has of a measure's worst or mean: weighted already, and a mean of whole numbers is none."""
    return replace(measure, weighted=False, dtype=measure.dtype if what == "worst" else None)


def folded(measures: Sequence[Measure]) -> tuple[Measure, ...]:
    """Both of each measure, under the names of outputs: <measure>_worst, <measure>_mean."""
    return tuple(
        replace(fold_of(measure, what), name=folded_name(measure.name, what)) for measure in measures for what in FOLDS
    )


def folded_name(measure: str, what: str) -> str:
    """What the worst or the mean of a measure is called in outputs."""
    return f"{measure}_{what}"


def folded_names(measures: Sequence[str]) -> list[str]:
    """The names of both of each measure, in order."""
    return [folded_name(measure, what) for measure in measures for what in FOLDS]
