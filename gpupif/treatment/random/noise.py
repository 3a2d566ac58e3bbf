"""Noise: numbers are moved by random amounts."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from gpupif.kernels.variates import LAPLACE, NORMAL, UNIFORM, draw_variates

from ...rows.threads import Workers
from ..coded_columns import ColumnValues
from ..field_checks import positive
from ..steps import Chunk, Step
from ..treatment import Tools, TreatedTable, Treatment
from .draws import Draws
from .transitions import PresentCells, column_from_values
from .units import units_of

DISTRIBUTIONS = {"normal": NORMAL, "laplace": LAPLACE, "uniform": UNIFORM}


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
