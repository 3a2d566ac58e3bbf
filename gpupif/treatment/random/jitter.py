"""Jitter: dates and numbers moved by whole steps, row by row."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...utils.validation import whole_number
from ..steps import Chunk, Step
from ..treatment import Tools, TreatedTable, Treatment
from .draws import Draws, whole_steps
from .transitions import Present, column_of
from .units import units_of

MOST_STEPS = 2**31 - 1


@dataclass(frozen=True)
class Jitter(Treatment):
    """Move each date by whole days, or each number by whole units, up to `within` either way, all equally often.

    Rows are moved apart from each other: for dates of one person, whose intervals are to be kept, there is
    `ShiftDates`. The time of day stays. Texts of dates in ISO form are dates, too, other texts that are
    numbers these. Missing values stay missing.

    This is no differential privacy, and little protection: by dates known to a fortnight Narayanan and Shmatikov (2008)
    found most people of a published table again.
    """

    do: ClassVar[str] = "jitter"
    is_random: ClassVar[bool] = True

    column: Hashable
    within: int

    def check(self) -> None:
        whole_number(f"{self.do} of column {self.column!r}: within", self.within, "days or units", 1, MOST_STEPS)

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        labels = table.values(self.column).labels
        units = units_of(self.column, labels, dates=True, numbers=True)
        return JitterStep(self.column, tools.draws(self.do, self.column), int(self.within), units.places)


@dataclass(frozen=True)
class JitterStep(Step):
    """Jitter of one column. places: see `Units`."""

    column: Hashable
    draws: Draws
    within: int
    places: int | None = None

    @property
    def writes(self) -> Sequence[Hashable]:
        return (self.column,)

    def apply(self, chunk: Chunk) -> None:
        missing, labels, places = Present.of(chunk[self.column])
        units = units_of(self.column, labels, dates=True, numbers=True, places=self.places)
        steps = whole_steps(self.draws.of_rows(chunk.start, len(missing)), self.within)[~missing]
        chunk[self.column] = column_of(units.stepped(places, steps), missing)
