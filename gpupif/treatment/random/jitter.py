"""Jitter: dates and numbers are moved by a random whole number of steps, row by row."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from ..field_checks import whole
from ..steps import Chunk, Step
from ..treatment import Tools, TreatedTable, Treatment
from .draws import Draws, whole_steps
from .transitions import PresentCells, column_from_values
from .units import units_of

MOST_STEPS = 2**31 - 1


@dataclass(frozen=True)
class Jitter(Treatment):
    """Move each date by random whole days, or each number by random whole units, up to `within` up or down.

    column: name of the column. within: days or units, from 1 to 2^31 - 1; all moves up to it are equally likely.

    Each row is moved independently. To keep the intervals between dates of a person, take `ShiftDates`. The time of day
    stays. Texts of dates in ISO form count as dates; other texts must be numbers. Missing values stay missing.

    Jitter gives no differential privacy and little protection: Narayanan and Shmatikov (2008) found most people in a
    published table from dates that they knew to a fortnight.

    Raises InputError for a text that is neither date nor number, and for a value that leaves its type. Raises
    ColumnTypeError for values of other types.
    """

    do: ClassVar[str] = "jitter"
    is_random: ClassVar[bool] = True

    column: Hashable
    within: Annotated[int, whole("days or units", 1, MOST_STEPS)]

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        labels = table.values(self.column).labels
        units = units_of(self.column, labels, dates=True, numbers=True)
        draws = tools.draws(self.do, self.column)
        return JitterStep(draws, int(self.within), units.places, writes=[self.column])


@dataclass(frozen=True)
class JitterStep(Step):
    """The prepared `Jitter` of a column. within: days or units. places: see `Units.places`."""

    draws: Draws
    within: int
    places: int | None = None

    def apply(self, chunk: Chunk) -> None:
        missing, labels, places = PresentCells.from_column(chunk[self.column])
        units = units_of(self.column, labels, dates=True, numbers=True, places=self.places)
        steps = whole_steps(self.draws.of_rows(chunk.start, len(missing)), self.within)[~missing]
        chunk[self.column] = column_from_values(units.stepped(places, steps), missing)
