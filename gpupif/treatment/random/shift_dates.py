"""Shifted dates: all dates of a person move by the same number of days, which keeps the intervals between them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from ...encoding.plain_values import texts
from ...errors import InputError
from ...utils.validation import check_exist
from ..field_checks import date_format, not_empty, whole
from ..steps import Chunk, Step
from ..treatment import Tools, TreatedTable, Treatment
from .draws import Draws, whole_steps
from .jitter import MOST_STEPS
from .transitions import PresentCells, column_from_values
from .units import units_of


@dataclass(frozen=True)
class ShiftDates(Treatment):
    """Shift all dates of a person by the same random number of days, up to `days` up or down.

    columns: names of the columns of dates.
    person: name of the column that identifies persons.
    days: largest shift, in days.
    missing: the rule for rows without a person, required if there are any: "row" shifts each row by its own number,
        "suppress" makes its dates missing. Default None.
    format: format of dates that are texts or whole numbers, with the signs of ``strptime``: ``"%m/%d/%Y"``. The shifted
        dates have the same format. Default None: texts are dates in ISO form.

    The shift is a keyed hash of the person's value: a person has a single shift in all columns and rows. Tables that
    are treated with equal keys at equal positions of a plan have equal shifts. Intervals between dates of a person, and
    the time of day, stay. Missing dates stay missing. A person is not shifted with probability 1 / (2 days + 1).

    Raises InputError for rows without a person if `missing` is None, and for a text that is no date. Also raises
    InputError for a shifted date outside the years 1 to 9999. Raises ColumnTypeError for values that are no dates.
    """

    do: ClassVar[str] = "shift_dates"
    is_random: ClassVar[bool] = True

    columns: Annotated[Sequence[Hashable], not_empty]
    person: Hashable
    days: Annotated[int, whole("days", 1, MOST_STEPS)]
    missing: Literal["row", "suppress"] | None = None
    format: Annotated[str | None, date_format] = None

    def check(self) -> None:
        super().check()
        if self.person in self.columns:
            raise InputError(
                f"{self.do}: person: {self.person!r} is one of the columns that are shifted; take another."
            )

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        check_exist(f"{self.do}: person", [self.person], table.names)
        persons = table.values(self.person)
        if persons.missing and self.missing is None:
            raise InputError(
                f"column {self.person!r}: {persons.missing:,} rows without a person, and no rule for their dates. Say "
                "missing='row', which shifts each of them by itself, or missing='suppress'."
            )
        for name in self.columns:
            units_of(name, table.values(name).labels, dates=True, numbers=False, written=self.format)
        draws = tools.draws(self.do, self.person)
        row_draws = tools.draws(self.do, self.person, "rows without a person")
        return ShiftStep(
            *(draws, row_draws, int(self.days), self.missing == "suppress", self.format),
            writes=self.columns,
            reads=[self.person],
        )


@dataclass(frozen=True)
class ShiftStep(Step):
    """The prepared `ShiftDates`.

    draws: random numbers of persons. row_draws: random numbers of rows without a person. suppress: whether dates of
    rows without a person become missing. written: format of dates that are not in ISO form.
    """

    draws: Draws
    row_draws: Draws
    days: int
    suppress: bool
    written: str | None = None

    def apply(self, chunk: Chunk) -> None:
        shifts, nobody = self._shifts(chunk)
        for name in self.writes:
            missing, labels, places = PresentCells.from_column(chunk[name])
            units = units_of(name, labels, dates=True, numbers=False, written=self.written)
            if self.suppress:
                places, missing = places[~nobody[~missing]], missing | nobody
            chunk[name] = column_from_values(units.stepped(places, shifts[~missing]), missing)

    def _shifts(self, chunk: Chunk) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Return the shift of each row in days, int64 (rows,), and whether the row has no person, booleans (rows,)."""
        nobody, persons, places = PresentCells.from_column(chunk[self.reads[0]])
        shifts = np.zeros(len(nobody), np.int64)
        shifts[~nobody] = whole_steps(self.draws.of_values(texts(persons).to_pylist()), self.days)[places]
        if nobody.any() and not self.suppress:
            shifts[nobody] = whole_steps(self.row_draws.of_rows(chunk.start, len(nobody)), self.days)[nobody]
        return shifts, nobody
