"""What is asked of the cells of a table, and whether its columns allow that."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np

from ..attack.request import ScoreRequest, nearly_unique
from ..encoding.column import Column
from ..engines.base import Job
from ..errors import InputError, NearlyUniqueWarning, warn
from ..measures import as_weighted, resolve_measures
from ..utils.display import plural
from ..utils.validation import brief
from .models import MODELS
from .request import RiskRequest

# The rows of the class of a cell, with weights the people.
CLASS_SIZE = MODELS["k"].cell
# The different values of the class of a cell.
DISTINCT = MODELS["distinct_l"].cell


class NoAttribute(Enum):
    """A single thing, the same in every process."""

    NONE = 0


# Takes the place of a sensitive attribute where there is none: a column with the same value in all rows.
NONE = NoAttribute.NONE


def as_score_request(request: RiskRequest, orders: Mapping[Hashable, Sequence[Any]]) -> ScoreRequest:
    """What is asked of the cells of a table. orders: of ordered categories, all values in order."""
    scored_columns = request.sensitive or [NONE]
    # What takes the place of an attribute is no column of the table, so it comes last.
    columns = [*request.columns, *([] if request.sensitive else scored_columns)]
    measures = resolve_measures(_cell_measures(request))
    return ScoreRequest(
        scored_columns=scored_columns,
        known=request.quasi_identifiers,
        used=columns,
        priors={},
        accuracies={},
        distances=request.distances(orders),
        missing=request.missing,
        measures=measures if request.weights is None else tuple(map(as_weighted, measures)),
        dtype="float64",
        weights=request.weights,
    )


def _cell_measures(request: RiskRequest) -> list[str]:
    """The measures of cells that are looked for: those that disclosure measures are the extremes of, and where classes
    are not counted also their size, and what homogeneous ones are known by.
    """
    matching, l_values = request.matching, request.l_values
    models = [model for model in request.models if not model.of_l or l_values]
    measures = [model.measure(l_values or 0, matching) for model in models]
    if request.may_look_again:
        measures += [DISTINCT, first_of_all(matching)]
    if matching and request.groups and request.sensitive:
        measures += [first_of_all(matching), "entropy"]
    return [*measures, CLASS_SIZE] if matching else measures


def first_of_all(matching: bool) -> str:
    """The cell measure whose highest is r_1 / (r_1 + ... + r_m), recursive diversity for l = 1."""
    return MODELS["alpha"].measure(1, matching)


@contextmanager
def about_distance() -> Iterator[None]:
    """Say of what is wrong with a distance what its argument is called here."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace("distances:", "distance:", 1)) from None


def constant_column(rows: int, given: int) -> Column:
    """A column with the same value in all rows, of which the codes of so many are given."""
    return Column(NONE, np.zeros(given, np.uint8), np.array([rows]), np.zeros(1, np.uint8), False)


def with_households(job: Job, place: int | None) -> Job:
    """The job with the column of households, if there is one, among its scored columns.

    So it goes wherever rows of equivalence classes are looked at, once with each; no engine scores it.
    """
    return job if place is None else replace(job, scored_columns=[*job.scored_columns, place])


def check_households(name: Hashable, missing: int) -> None:
    """Raise InputError where some rows have no household; missing: how many."""
    if missing:
        raise InputError(
            f"household: column {name!r}: expected a household in each row, got {missing:,} missing "
            f"{plural(missing, 'value')}, which might be of one household or of many. Give each row that is alone a "
            "household of its own."
        )


def check_values(column: Column) -> None:
    """Raise InputError for a sensitive attribute of fewer than two values."""
    if column.cardinality < 2:
        came = f"{brief(column.values()[0])} in all rows" if column.cardinality else "none"
        raise InputError(
            f"sensitive: column {column.name!r}: expected at least two different values, got {came}, so there is "
            "nothing to learn. Leave it out."
        )


def check_columns(
    columns: Sequence[Column], rows: int, request: RiskRequest, on_warning: Callable[[str, type[Warning]], None] = warn
) -> None:
    """Raise InputError for a sensitive attribute with one value, unless the request allows that, or fewer than l, and
    for rows without a household; warn of nearly unique columns.

    columns: those of the request, and perhaps others behind them.
    """
    known = len(request.quasi_identifiers)
    if request.household_place is not None:
        households = columns[request.household_place]
        check_households(households.name, households.missing_rows)
    for column in columns[known : known + len(request.sensitive)]:
        valued = column.without_missing() if request.matching and column.missing else column
        if not request.may_lack_values:
            check_values(valued)
        if request.l_values is not None and request.l_values > valued.cardinality:
            raise InputError(
                f"l: expected at most {valued.cardinality:,}, the different values of column {column.name!r}; "
                f"got {request.l_values:,}."
            )
    for column in nearly_unique(columns[:known], rows):
        on_warning(
            f"quasi_identifiers: column {column.name!r}: {column.cardinality:,} different values in {rows:,} rows, so "
            "nearly every class is a single row. Leave it out (an identifier), or bin it (a measurement).",
            NearlyUniqueWarning,
        )
