"""Noise: numbers moved by random amounts."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gpupif.kernels.variates import LAPLACE, NORMAL, UNIFORM, draw_variates

from ...errors import InputError
from ...rows.threads import Workers
from ...utils.validation import brief, check_word, is_number
from ..coded_columns import ColumnValues
from ..steps import Chunk, Step
from ..treatment import Tools, TreatedTable, Treatment
from .draws import Draws
from .transitions import Present, column_of
from .units import units_of

DISTRIBUTIONS = {"normal": NORMAL, "laplace": LAPLACE, "uniform": UNIFORM}
VALUE, DEVIATION = "value", "deviation"


@dataclass(frozen=True)
class Noise(Treatment):
    """Add random noise to numbers, drawn anew for each row.

    scale: the standard deviation of "normal" noise, the scale b of "laplace" (density exp(-|x|/b)/(2b)), half of the
    width of "uniform"; in the column's units, or, relative to "value" or "deviation", as a share of the size of each
    value or of the column's standard deviation. Whole numbers get noise rounded to whole numbers, decimal numbers to
    their last place, texts that are numbers to the last one that any of them is written with. Missing values stay
    missing.

    This is no differential privacy: values have no bounds and noise is rounded, so that no epsilon is claimed; who
    averages over rows that belong together gets near what was there. The same bits on every machine: inverses of the
    distribution functions (Wichura's AS 241 for the normal one), from 52 random bits, by operations that round alike.
    """

    do: ClassVar[str] = "noise"
    is_random: ClassVar[bool] = True

    column: Hashable
    scale: float
    distribution: str = "normal"
    relative: str | None = None

    def check(self) -> None:
        said = f"{self.do} of column {self.column!r}"
        if not is_number(self.scale) or not 0 < self.scale < math.inf:
            raise InputError(f"{said}: scale: expected a number above 0, got {brief(self.scale)}.")
        check_word(f"{said}: distribution", self.distribution, tuple(DISTRIBUTIONS))
        if self.relative is not None:
            check_word(f"{said}: relative", self.relative, (VALUE, DEVIATION))

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        found = table.values(self.column)
        units = units_of(self.column, found.labels, dates=False, numbers=True)
        draws = tools.draws(self.do, self.column)
        scale = float(self.scale) * (deviation(units.amounts / units.one, found) if self.relative == DEVIATION else 1.0)
        return NoiseStep(
            self.column, draws, scale, DISTRIBUTIONS[self.distribution], self.relative == VALUE, units.places
        )


def deviation(amounts: npt.NDArray[np.float64], values: ColumnValues) -> float:
    """The standard deviation of a column, the same on every machine. values: how often each amount occurs."""
    rows = int(values.counts.sum())
    if rows == 0:
        return 0.0
    mean = math.fsum((amounts * values.counts).tolist()) / rows
    return math.sqrt(math.fsum(((amounts - mean) ** 2 * values.counts).tolist()) / rows)


@dataclass(frozen=True)
class NoiseStep(Step):
    """Noise of one column. scale: in its units, or, where it is relative, of each value's size. places: see `Units`."""

    column: Hashable
    draws: Draws
    scale: float
    distribution: int
    relative: bool
    places: int | None = None

    @property
    def writes(self) -> Sequence[Hashable]:
        return (self.column,)

    def apply(self, chunk: Chunk) -> None:
        missing, labels, places = Present.of(chunk[self.column])
        units = units_of(self.column, labels, dates=False, numbers=True, places=self.places)
        noise = variates(self.distribution, self.draws.of_rows(chunk.start, len(missing)))[~missing] * self.scale
        noise *= np.abs(units.amounts)[places] if self.relative else float(units.one)
        if units.amounts.dtype.kind != "f":
            rounded = np.rint(noise)
            if (np.abs(rounded) >= 2.0**62).any():
                raise units.beyond()
            noise = rounded.astype(np.int64)
        chunk[self.column] = column_of(units.moved(places, noise), missing)

    def record(self) -> dict[str, Any]:
        return {"scale": self.scale}

    def revealing(self) -> Sequence[str]:
        # Also where it is as in the plan, so that its lack tells nothing.
        return ("scale",)


def variates(distribution: int, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Numbers of a distribution, one for each of 64 bits."""
    out = np.empty(len(numbers))
    with Workers() as workers:
        pieces = [(distribution, numbers[start:stop], out[start:stop]) for start, stop in workers.ranges(len(out))]
        workers.run(draw_variates, pieces)
    return out
