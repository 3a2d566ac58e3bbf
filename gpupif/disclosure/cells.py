"""What is asked of the cells of a table, and whether its columns allow that."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

import numpy as np

from ..attack.request import UNIQUE_ROWS, UNIQUE_SHARE, Question
from ..encoding.column import Column
from ..errors import InputError, NearlyUniqueWarning, warn
from ..measures import resolve_measures
from .models import MODELS
from .request import Asked


class Nothing(Enum):
    """A single thing, the same in every process."""

    NONE = 0


# Takes the place of a sensitive attribute where there is none: a column with the same value in all rows.
NONE = Nothing.NONE
# The cell measure whose highest is r_1 / (r_1 + ... + r_m), recursive diversity for l = 1.
FIRST_OF_ALL = "posterior"


def ask_risk(asked: Asked, orders: Mapping[Hashable, Sequence[Any]]) -> Question:
    """What is asked of the cells of a table. orders: of ordered categories, all values in order."""
    measures = [model.measure(asked.l_values or 0) for model in asked.models if not model.of_l or asked.l_values]
    if any(model.of_l for model in asked.models) and asked.l_values is None:
        measures += [MODELS["distinct_l"].cell, FIRST_OF_ALL]
    targets = asked.sensitive or [NONE]
    return Question(
        targets=targets,
        known=asked.quasi_identifiers,
        used=[*asked.quasi_identifiers, *targets],
        priors={},
        accuracies={},
        distances=asked.distances(orders),
        missing=asked.missing,
        measures=resolve_measures(measures),
        dtype="float64",
    )


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


def check_columns(
    columns: Sequence[Column], rows: int, asked: Asked, on_warning: Callable[[str, type[Warning]], None] = warn
) -> None:
    """Raise InputError for a sensitive attribute with one value or fewer than l; tell of nearly unique columns.

    columns: the quasi-identifiers, then the sensitive attributes.
    """
    known = len(asked.quasi_identifiers)
    for column in columns[known:]:
        if column.cardinality == 1:
            raise InputError(
                f"sensitive: column {column.name!r}: expected at least two different values, got "
                f"{column.values()[0]!r} in all rows, so there is nothing to learn. Leave it out."
            )
        if asked.l_values is not None and asked.l_values > column.cardinality:
            raise InputError(
                f"l: expected at most {column.cardinality:,}, the different values of column {column.name!r}; "
                f"got {asked.l_values:,}."
            )
    for column in columns[:known]:
        if rows >= UNIQUE_ROWS and column.cardinality >= UNIQUE_SHARE * rows:
            on_warning(
                f"quasi_identifiers: column {column.name!r}: {column.cardinality:,} different values in {rows:,} rows, "
                "so nearly every class is a single row. Leave it out (an identifier), or bin it (a measurement).",
                NearlyUniqueWarning,
            )
