"""Correlated noise: the noise of several columns has the covariances of the columns."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from gpupif.kernels.random_values import NORMAL

from ...errors import InputError
from ..field_checks import not_empty, positive
from ..random.draws import Draws
from ..random.moved_values import PresentCells, column_from_values, variates
from ..random.swap import check_memory, have_values
from ..random.units import units_of
from ..steps import Chunk, Step
from ..treatment import Tools, TreatedTable, Treatment
from ..value_maps.new_values import check_finite
from .moments import Floats, covariance, factor, mean_of

# The bytes of memory for each cell while covariances are summed: numbers, products, and Python's floats.
CELL_BYTES = 96


@dataclass(frozen=True)
class CorrelatedNoise(Treatment):
    """Add normal noise to several columns of numbers, with the covariances of the columns (Kim, 1986).

    columns: names of the columns of numbers.
    variance: number above 0. The covariances of the noise are this share of the covariances S of the columns. So the
        covariances after are (1 + variance) S in expectation.
    rescaled: whether each number's difference from the mean of its column is divided by sqrt(1 + variance) afterwards.
        Means and covariances after are those before, in expectation (Kim 1986). Default False.

    Means and covariances are over the rows without a missing value in `columns`, with the number of rows as divisor.
    Missing values stay missing, and the other values of their rows get noise, too. Noise of whole numbers is rounded to
    whole numbers; of decimal numbers and texts, to the last place. Noise is no differential privacy, see `Noise`.

    Raises InputError if no row has a value in all columns, for infinite numbers, and for a text that is no number. Also
    raises it for a sum that leaves the type of its column, and if the columns of all rows do not fit into memory.
    Raises ColumnTypeError for values that are no numbers.

    Sources: Kim (1986), A method for limiting disclosure in microdata based on random noise and transformation; Brand
    (2002), Microdata protection through noise addition, sections 2.2 and 2.3.
    """

    do: ClassVar[str] = "correlated_noise"
    is_random: ClassVar[bool] = True

    columns: Annotated[Sequence[Hashable], not_empty]
    variance: Annotated[float, positive]
    rescaled: bool = False

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        names, needed = self.columns, CELL_BYTES * len(self.columns)
        check_memory(self.do, table.rows, needed, "add noise")
        coded = table.codes(names, needed)
        units = [units_of(name, own.labels, dates=False, numbers=True) for name, own in zip(names, coded, strict=True)]
        complete = have_values(coded)
        if not complete.any():
            raise InputError(
                f"{self.do}: expected rows with a value in all columns ({', '.join(map(str, names))}), got none. "
                "Give fewer columns, or take noise for each."
            )
        numbers = [own.amounts.astype(np.float64)[column.codes[complete]] for own, column in zip(units, coded)]  # noqa: B905
        for name, own in zip(names, numbers, strict=True):
            check_finite(name, own)
        return CorrelatedNoiseStep(
            [tools.draws(self.do, name) for name in names],
            factor(covariance(numbers)) * math.sqrt(self.variance),
            [mean_of(own) for own in numbers],
            1 / math.sqrt(1 + self.variance) if self.rescaled else 1.0,
            [own.places for own in units],
            writes=names,
        )


@dataclass(frozen=True)
class CorrelatedNoiseStep(Step):
    """The prepared `CorrelatedNoise`.

    draws: random numbers by column. mixing: lower triangular (columns, columns). It turns independent normal variates
    into noise, in units of each column. means: by column, in its units. shrink: the factor of differences from the
    mean. places: see `Units.places`, by column.
    """

    draws: Sequence[Draws]
    mixing: Floats
    means: Sequence[float]
    shrink: float
    places: Sequence[int | None]

    def apply(self, chunk: Chunk) -> None:
        independent = [variates(NORMAL, own.of_rows(chunk.start, chunk.rows)) for own in self.draws]
        for number, name in enumerate(self.writes):
            missing, labels, places = PresentCells.from_column(chunk[name])
            units = units_of(name, labels, dates=False, numbers=True, places=self.places[number])
            noise = np.zeros(chunk.rows)
            for own, weight in zip(independent[: number + 1], self.mixing[number], strict=False):
                noise += weight * own
            off = units.amounts.astype(np.float64)[places] - self.means[number]
            by = self.shrink * noise[~missing] + (self.shrink - 1.0) * off
            if units.amounts.dtype.kind != "f":
                rounded = np.rint(by)
                if (np.abs(rounded) >= 2.0**62).any():
                    raise units.range_error()
                by = rounded.astype(np.int64)
            chunk[name] = column_from_values(units.moved(places, by), missing)
