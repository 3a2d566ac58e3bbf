"""The equivalence classes of a table in the population that it is a part of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpupif.engines.subsets import number_rows
from gpupif.engines.workers import Workers
from gpupif.errors import InputError
from gpupif.progress import Reporter

from .asked import Asked
from .assess import encode, open_table
from .classes import PopulationRisks, population_risks

if TYPE_CHECKING:
    import numpy.typing as npt

    from gpupif.columns import Column


def risks_in(population: Any, asked: Asked, known: Sequence[Column], threshold: float) -> PopulationRisks:
    """Journalist and marketer risk of a table in a population, a table of its own with the quasi-identifiers.

    known: the quasi-identifiers of the table; values are the same where Python says that they are equal. Raises
    InputError where the table is no part of the population.
    """
    only_known = replace(asked, sensitive=[], sep=None)
    try:
        frame = open_table(population, only_known, None)
        with frame.active():
            people = [column.on_host() for column in encode(frame, only_known, Reporter(False))]
    except InputError as error:
        raise InputError(f"population: {error}") from None
    rows = len(known[0].codes)
    codes = [_together(one, other) for one, other in zip(known, people, strict=True)]
    with Workers() as workers:
        number = number_rows(codes, [column.cardinality for column in people], workers).number
    sample, everyone = (np.bincount(part, minlength=int(number.max()) + 1) for part in (number[:rows], number[rows:]))
    found = np.flatnonzero(sample)
    smaller = found[everyone[found] < sample[found]]
    if len(smaller):
        row = int(np.flatnonzero(number[:rows] == smaller[0])[0])
        values = {column.name: column.values([int(column.on_host().codes[row])])[0] for column in known}
        raise InputError(
            f"population: expected no fewer people than rows of the table in any class, got "
            f"{everyone[smaller[0]]} for {sample[smaller[0]]} rows with {values}. The table has to be a part of it."
        )
    return population_risks(sample[found], everyone[found], threshold=threshold)


def _together(of_table: Column, of_population: Column) -> npt.NDArray[Any]:
    """The codes of a column of the table, as the population has them, then those of the population."""
    code_of = {value: code for code, value in enumerate(of_population.values())}
    values = of_table.values()
    lacking = [value for value in values if value not in code_of]
    if lacking:
        raise InputError(
            f"population: column {of_table.name!r}: {lacking[0]!r} is in the table, but not in the population. The "
            "table has to be a part of it, with values of the same type."
        )
    codes = of_population.codes
    return np.concatenate(
        [np.array([code_of[value] for value in values], codes.dtype)[of_table.on_host().codes], codes]
    )
