"""Dates shifted by one number of days for each person, so that what lies between them stays."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ...encoding.plain_values import texts
from ...errors import InputError
from ...utils.validation import as_list, check_exist, whole_number
from ..steps import Chunk, Step
from ..treatment import Tools, TreatedTable, Treatment
from ..value_maps.date_part import check_format
from .draws import Draws, whole_steps
from .jitter import MOST_STEPS
from .transitions import Present, check_missing_rule, column_of
from .units import units_of

ROW, SUPPRESS = "row", "suppress"


@dataclass(frozen=True)
class ShiftDates(Treatment):
    """Shift the dates of each person by one number of days from -days to days, the same in all columns and rows.

    person: the column that says who it is; the shift is a keyed hash of its value, so that it is the same in every
    table that is treated by this key at this place of a plan. Intervals between dates of a person stay as they are, and
    the time of day. Texts of dates in ISO form are dates, too; missing dates stay missing. missing: what becomes of
    dates of rows without a person: "row" shifts each such row by a number of its own, "suppress" makes them missing;
    required where there are any. format: how else dates are written, in texts or whole numbers of any of the columns,
    with the signs of ``strptime``: ``"%m/%d/%Y"``; so they are written again. One person in 2 days + 1
    is not shifted: which is not known.
    """

    do: ClassVar[str] = "shift_dates"
    is_random: ClassVar[bool] = True

    columns: Sequence[Hashable]
    person: Hashable
    days: int
    missing: str | None = None
    format: str | None = None

    def check(self) -> None:
        columns = as_list(f"{self.do}: columns", self.columns)
        if not columns:
            raise InputError(f"{self.do}: columns: expected at least one column, got an empty list.")
        if self.person in columns:
            raise InputError(
                f"{self.do}: person: {self.person!r} is one of the columns that are shifted; take another."
            )
        whole_number(f"{self.do}: days", self.days, "days", 1, MOST_STEPS)
        check_missing_rule(self.do, self.missing, (ROW, SUPPRESS))
        check_format(self.do, self.format)

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        check_exist(f"{self.do}: person", [self.person], table.names)
        persons = table.values(self.person)
        if persons.missing and self.missing is None:
            raise InputError(
                f"column {self.person!r}: {persons.missing:,} rows without a person, and no rule for their dates. Say "
                "missing='row', which shifts each of them by itself, or missing='suppress'."
            )
        columns = as_list("columns", self.columns)
        for name in columns:
            units_of(name, table.values(name).labels, dates=True, numbers=False, written=self.format)
        draws = tools.draws(self.do, self.person)
        of_rows = tools.draws(self.do, self.person, "rows without a person")
        return ShiftStep(columns, self.person, draws, of_rows, int(self.days), self.missing == SUPPRESS, self.format)


@dataclass(frozen=True)
class ShiftStep(Step):
    """Dates of some columns. draws: of persons; of_rows: where there is none. suppress: whether dates then go.
    written: how dates are, if not in ISO form.
    """

    columns: Sequence[Hashable]
    person: Hashable
    draws: Draws
    of_rows: Draws
    days: int
    suppress: bool
    written: str | None = None

    @property
    def writes(self) -> Sequence[Hashable]:
        return self.columns

    @property
    def reads(self) -> Sequence[Hashable]:
        return (self.person,)

    def apply(self, chunk: Chunk) -> None:
        shifts, nobody = self._shifts(chunk)
        for name in self.columns:
            missing, labels, places = Present.of(chunk[name])
            units = units_of(name, labels, dates=True, numbers=False, written=self.written)
            if self.suppress:
                places, missing = places[~nobody[~missing]], missing | nobody
            chunk[name] = column_of(units.stepped(places, shifts[~missing]), missing)

    def _shifts(self, chunk: Chunk) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The days of each row, and whether it has no person."""
        nobody, persons, places = Present.of(chunk[self.person])
        shifts = np.zeros(len(nobody), np.int64)
        shifts[~nobody] = whole_steps(self.draws.of_values(texts(persons).to_pylist()), self.days)[places]
        if nobody.any() and not self.suppress:
            shifts[nobody] = whole_steps(self.of_rows.of_rows(chunk.start, len(nobody)), self.days)[nobody]
        return shifts, nobody
