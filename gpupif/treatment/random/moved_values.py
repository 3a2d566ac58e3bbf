"""Moved values: dates and numbers move by random steps or noise; all dates of a person move by the same days."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpupif.kernels.random_values import LAPLACE, NORMAL, UNIFORM, draw_variates

from ...encoding.plain_values import texts
from ...errors import InputError
from ...rows.keys import code_type
from ...rows.threads import Workers
from ...utils.validation import check_exist
from ..coded_columns import CodedColumn, ColumnValues
from ..field_checks import date_format, not_empty, positive, whole
from ..steps import Chunk, Step
from ..treatment import Tools, TreatedTable, Treatment
from .draws import Draws, whole_steps
from .units import units_of

MOST_STEPS = 2**31 - 1
DISTRIBUTIONS = {"normal": NORMAL, "laplace": LAPLACE, "uniform": UNIFORM}


class PresentCells(NamedTuple):
    """The cells of a chunk's column that have a value.

    missing: booleans (rows,). Whether each row has no value.
    labels: Arrow array. The distinct values that occur.
    places: int64 (rows with a value,). Position of each row's value among the labels.
    """

    missing: npt.NDArray[np.bool_]
    labels: pa.Array
    places: npt.NDArray[np.int64]

    @classmethod
    def from_column(cls, column: CodedColumn) -> PresentCells:
        """Return the present cells of a column. Labels that do not occur are dropped: a chunk may have few of them."""
        missing = column.codes == len(column.labels)
        there = np.zeros(len(column.labels) + 1, np.bool_)
        there[column.codes] = True
        used = np.flatnonzero(there[:-1])
        numbers = np.cumsum(there) - 1
        return cls(missing, column.labels.take(pa.array(used)), numbers[column.codes[~missing]])


def column_from_values(values: pa.Array, missing: npt.NDArray[np.bool_]) -> CodedColumn:
    """Return a column from the values of the rows with a value, and from the mask of rows without (rows,)."""
    encoded = values.dictionary_encode()
    labels = encoded.dictionary
    codes = np.full(len(missing), len(labels), code_type(len(labels) + 1))
    codes[~missing] = encoded.indices.to_numpy()
    return CodedColumn(codes, labels)


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


@dataclass(frozen=True)
class Noise(Treatment):
    """Add random noise to numbers, drawn independently for each row.

    column: name of the column.
    scale: number above 0, in the column's units unless `relative` is given. The standard deviation of "normal" noise,
        the scale b of "laplace" noise (density exp(-|x|/b)/(2b)), half of the width of "uniform" noise.
    distribution: "normal", "laplace" or "uniform". Default "normal".
    relative: "value" if the scale is a share of each number's absolute value, "deviation" if it is a share of the
        column's standard deviation. Default None: neither.

    Noise of whole numbers is rounded to whole numbers. Noise of decimal numbers is rounded to their last place, and
    noise of texts that are numbers to the most decimal places in the column. Missing values stay missing.

    Noise gives no differential privacy: values have no bounds, and noise is rounded. The average over several rows of
    a person is near the true average.

    Noise is the inverse of the distribution function (Wichura's AS 241 for the normal distribution) at a number of 52
    random bits. Every machine computes equal bits, by operations that round equally everywhere.

    Raises InputError for a text that is no number, and for a sum that leaves the type of the column. Raises
    ColumnTypeError for values that are no numbers.
    """

    do: ClassVar[str] = "noise"
    is_random: ClassVar[bool] = True

    column: Hashable
    scale: Annotated[float, positive]
    distribution: Literal["normal", "laplace", "uniform"] = "normal"
    relative: Literal["value", "deviation"] | None = None

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        values = table.values(self.column)
        units = units_of(self.column, values.labels, dates=False, numbers=True)
        draws = tools.draws(self.do, self.column)
        spread = deviation(units.amounts / units.step, values) if self.relative == "deviation" else 1.0
        scale = float(self.scale) * spread
        return NoiseStep(
            *(draws, scale, DISTRIBUTIONS[self.distribution], self.relative == "value", units.places),
            writes=[self.column],
            record={"scale": scale},
            # A public record always omits the scale: a scale that was only sometimes omitted would tell something.
            revealing=["scale"],
        )


def deviation(amounts: npt.NDArray[np.float64], values: ColumnValues) -> float:
    """Return the standard deviation of a column, equal on every machine. amounts: the number of each of `values`."""
    rows = int(values.counts.sum())
    if rows == 0:
        return 0.0
    mean = math.fsum((amounts * values.counts).tolist()) / rows
    return math.sqrt(math.fsum(((amounts - mean) ** 2 * values.counts).tolist()) / rows)


@dataclass(frozen=True)
class NoiseStep(Step):
    """The prepared `Noise` of a column.

    scale: in the column's units; a share of each absolute value if `relative` is True. distribution: its number in
    `DISTRIBUTIONS`. places: see `Units.places`.
    """

    draws: Draws
    scale: float
    distribution: int
    relative: bool
    places: int | None = None

    def apply(self, chunk: Chunk) -> None:
        missing, labels, places = PresentCells.from_column(chunk[self.column])
        units = units_of(self.column, labels, dates=False, numbers=True, places=self.places)
        noise = variates(self.distribution, self.draws.of_rows(chunk.start, len(missing)))[~missing] * self.scale
        noise *= np.abs(units.amounts)[places] if self.relative else float(units.step)
        if units.amounts.dtype.kind != "f":
            rounded = np.rint(noise)
            if (np.abs(rounded) >= 2.0**62).any():
                raise units.range_error()
            noise = rounded.astype(np.int64)
        chunk[self.column] = column_from_values(units.moved(places, noise), missing)


def variates(distribution: int, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Return a number of the distribution for each random number: float64 (numbers,)."""
    out = np.empty(len(numbers))
    with Workers() as workers:
        tasks = [(distribution, numbers[start:stop], out[start:stop]) for start, stop in workers.ranges(len(out))]
        workers.run(draw_variates, tasks)
    return out


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
