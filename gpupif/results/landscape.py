"""The risk landscape: all rows of a table in bands by their risk, and the distribution of scores in each column.

Scores are read in chunks and counted in steps of equal width, so that scores in files need not fit into memory. What is
kept is exact: rounding to a step keeps the order of scores, so the median of rounded scores is the rounded median.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpupif.kernels.steps import count_steps

from ..rows.threads import Workers
from ..utils.arrays import read_only
from ..utils.exact_sums import sum_rows
from ..utils.validation import whole_number

# Most bands of a landscape.
BANDS = 200
# Row information gains are cut at multiples of 1 / GAIN_STEPS bits.
GAIN_STEPS = 1024
# Most counters of steps (128 MiB), and the widths of steps to choose from, in steps per unit.
MOST_COUNTERS = 1 << 24
STEPS_PER_UNIT = (100, 50, 20, 10, 5, 2, 1)
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Histogram:
    """The number of scores of each column at each step.

    columns: names of the columns.
    step: width of a step, in the unit of the scores (CIG: bits).
    counts: (columns, steps). counts[c, k] scores of column c round to k steps, half steps up; negative scores to 0.
    beyond: (columns,). The number of infinite scores, which `counts` leaves out, as it does unknown scores (NaN).
    """

    columns: Sequence[Hashable]
    step: float
    counts: IntArray
    beyond: IntArray


@dataclass(frozen=True)
class Landscape:
    """The rows of a table, sorted by row information gain (RIG) and gathered into bands; made by `landscape`.

    columns: names of the scored columns, the highest FIG first.
    fig: (columns,). The FIG of each, in bits.
    rows: (bands,). The number of rows of each band, the riskiest band first.
    low, high: (bands,). A band has the rows with low <= RIG < high: multiples of 1/1024 bit, or inf.
    median: (bands, columns). The median CIG of the band's cells in bits, rounded to `step`; of an even number of cells
    the lower of the two in the middle. NaN if no cell of the band has a CIG.
    highest: (bands, columns). The highest CIG, in bits; NaN likewise.
    step: bits. The width to which medians are rounded.
    gains: the number of rows by RIG: item k has those with k <= RIG / gain_step < k + 1, the last those with infinite
        RIG. gain_step: bits.
    unknown_rows: the number of rows without a RIG, since a cell has no CIG. They are in no band.
    cells: the distribution of CIG in each column, in the order of `columns`, over the rows of all bands.
    """

    columns: Sequence[Hashable]
    fig: FloatArray
    rows: IntArray
    low: FloatArray
    high: FloatArray
    median: FloatArray
    highest: FloatArray
    step: float
    gains: IntArray
    gain_step: float
    unknown_rows: int
    cells: Histogram

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each band and column: band (from 0), rig_low, rig_high, rows, column, median, highest."""
        bands, columns = self.median.shape
        of_bands = {"band": np.arange(bands), "rig_low": self.low, "rig_high": self.high, "rows": self.rows}
        return pd.DataFrame(
            {name: np.repeat(numbers, columns) for name, numbers in of_bands.items()}
            | {"column": list(self.columns) * bands, "median": self.median.ravel(), "highest": self.highest.ravel()}
        )


class _Extent(NamedTuple):
    """The extent of some scores.

    highest: (columns,). The highest finite score of each column; 0 if there is none above.
    gains: the number of rows by RIG in steps. infinite, unknown: the number of rows whose RIG is infinite, or NaN.
    """

    highest: FloatArray = np.zeros(0)
    gains: IntArray = np.zeros(0, np.int64)
    infinite: int = 0
    unknown: int = 0


class _Steps(NamedTuple):
    """The counts of steps, (bands, steps) for each column, and the highest score by band and column."""

    counts: Sequence[IntArray]
    highest: FloatArray


def landscape(scores: Any, bands: int = BANDS) -> Landscape:
    """Return the risk landscape of scores: median and highest CIG in bands of rows by columns.

    The scores are read twice. Rows whose RIG lies within the same 1/1024 bit share a band; otherwise bands have about
    the same number of rows. Scores of a Dask frame are computed twice, unless `persist` keeps them.

    scores: `Scores`; untyped, as their module imports this one. bands: at most so many. Raises InputError for
    bands that are no whole number above 0, if CIG was not scored, and if the scores are not kept.
    """
    bands = whole_number("bands", bands, "bands of rows")
    fig = scores.fig().to_numpy()
    extent: _Extent = scores.fold("cig", _extent, _add_extents)
    by_gain = np.append(extent.gains, extent.infinite)
    band_of_step, low, high = _bands(by_gain, bands)
    steps, per_unit = _count(scores, "cig", extent.highest, len(low), partial(_bands_of_rows, band_of_step))
    order = np.argsort(-fig, kind="stable")
    names = [scores.columns[place] for place in order]
    counts = [steps.counts[place] for place in order]
    median = np.column_stack([_medians(of_bands, per_unit) for of_bands in counts])
    return Landscape(
        names,
        np.asarray(fig[order], np.float64),
        np.bincount(band_of_step, by_gain, len(low)).astype(np.int64),
        low,
        high,
        median,
        np.where(np.isnan(median), np.nan, steps.highest[:, order]),
        1 / per_unit,
        by_gain,
        1 / GAIN_STEPS,
        extent.unknown,
        _histogram(names, [of_bands.sum(axis=0) for of_bands in counts], per_unit),
    )


def csf_histogram(scores: Any) -> Histogram:
    """Return how many CSF lie at each step from 0 to 1, by column. Raises InputError as `landscape`, for CSF."""
    highest = np.ones(len(scores.columns))
    steps, per_unit = _count(scores, "csf", highest, 1, lambda chunk, _: np.zeros(chunk.shape[1], np.int64))
    return _histogram(scores.columns, [counts[0] for counts in steps.counts], per_unit)


def _extent(chunks: Iterable[Any], workers: Workers) -> _Extent:
    """Return the extent of scores, chunk by chunk."""

    def highest(scores: Any) -> float:
        return float(np.max(scores, initial=0, where=np.isfinite(scores)))

    whole = _Extent()
    for chunk in chunks:
        extremes = np.array(workers.run(highest, [(scores,) for scores in chunk]))
        gains = _row_gains(chunk, workers)
        steps, beyond, unknown = _gain_steps(gains[np.isfinite(gains)]), np.isposinf(gains), np.isnan(gains)
        part = _Extent(extremes, np.bincount(steps), int(beyond.sum()), int(unknown.sum()))
        whole = _add_extents(whole, part)
    return whole


def _add_extents(*parts: _Extent) -> _Extent:
    return _Extent(
        _join([part.highest for part in parts], np.maximum),
        _join([part.gains for part in parts], np.add),
        sum(part.infinite for part in parts),
        sum(part.unknown for part in parts),
    )


def _join(arrays: Sequence[npt.NDArray[Any]], combine: np.ufunc) -> npt.NDArray[Any]:
    """Combine arrays of different lengths item by item, as if zeros followed the shorter ones."""
    longest = max(map(len, arrays))
    joined: npt.NDArray[Any] = combine.reduce([np.pad(array, (0, longest - len(array))) for array in arrays])
    return joined


def _row_gains(chunk: Any, workers: Workers) -> FloatArray:
    """Return the RIG of each row of a chunk (scored columns, rows)."""
    spans = [(chunk[:, slice(*span)],) for span in workers.ranges(chunk.shape[1])]
    return np.concatenate(workers.run(sum_rows, spans))


def _gain_steps(gains: FloatArray) -> IntArray:
    """Return the step of each finite RIG; rounding may have left a RIG below 0."""
    return np.maximum(np.floor(gains * GAIN_STEPS), 0).astype(np.int64)


def _bands(by_gain: IntArray, bands: int) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the band of each step of RIG, and low and high of each band. by_gain: rows by step, infinite ones last."""
    occupied = np.flatnonzero(by_gain)
    # The band of a step follows from how many rows have a higher RIG.
    rows_above = by_gain.sum() - np.cumsum(by_gain)
    _, numbers = np.unique(rows_above[occupied] * bands // max(1, by_gain.sum()), return_inverse=True)
    band_of_step = np.zeros(len(by_gain), np.int64)
    band_of_step[occupied] = numbers
    steps = [occupied[numbers == band] for band in range(int(numbers.max(initial=-1)) + 1)]
    first, last = (np.array([own[place] for own in steps], np.int64) for place in (0, -1))
    low, high = (
        np.where(places == len(by_gain) - 1, np.inf, (places + after) / GAIN_STEPS)
        for places, after in ((first, 0), (last, 1))
    )
    return band_of_step, low, high


def _count(
    scores: Any, measure: str, highest: FloatArray, bands: int, band_of: Callable[[Any, Workers], IntArray]
) -> tuple[_Steps, int]:
    """Return the counts of steps in each band, and the steps per unit. band_of: returns the band of each row."""
    per_unit = next((steps for steps in STEPS_PER_UNIT if bands * (highest * steps + 2).sum() <= MOST_COUNTERS), 1)
    sizes = np.floor(highest * per_unit + 0.5).astype(np.int64) + 2

    def count(chunks: Iterable[Any], workers: Workers) -> _Steps:
        counts = [np.zeros((bands, size), np.int64) for size in sizes]
        extremes = np.full((len(sizes), bands), -np.inf)
        for chunk in chunks:
            places = read_only(band_of(chunk, workers))
            tasks = zip((read_only(one) for one in chunk), counts, extremes, strict=True)
            workers.run(lambda one, into, top: count_steps(one, places, per_unit, into, top), tasks)  # noqa: B023
        return _Steps(counts, extremes.T)

    steps: _Steps = scores.fold(measure, count, _add_steps)
    return steps, per_unit


def _add_steps(*parts: _Steps) -> _Steps:
    counts = [np.add.reduce(of_column) for of_column in zip(*(part.counts for part in parts), strict=True)]
    return _Steps(counts, np.maximum.reduce([part.highest for part in parts]))


def _bands_of_rows(band_of_step: IntArray, chunk: Any, workers: Workers) -> IntArray:
    """Return the band of each row of a chunk, -1 for rows without a RIG."""
    gains = _row_gains(chunk, workers)
    steps = np.full(len(gains), len(band_of_step) - 1)
    finite = np.isfinite(gains)
    steps[finite] = _gain_steps(gains[finite])
    return np.where(np.isnan(gains), -1, band_of_step[steps])


def _medians(counts: IntArray, per_unit: int) -> FloatArray:
    """Return the lower median of each band from its counts of steps (bands, steps), the last of infinite scores."""
    cells = counts.sum(axis=1, keepdims=True)
    steps = (np.cumsum(counts, axis=1) <= (cells - 1) // 2).sum(axis=1)
    values = np.append(np.arange(counts.shape[1] - 1) / per_unit, [np.inf, np.nan])
    return values[np.where(cells[:, 0] > 0, steps, -1)]


def _histogram(columns: Sequence[Hashable], counts: Sequence[IntArray], per_unit: int) -> Histogram:
    """Return the histogram of columns from the counts of their steps, the last of infinite scores."""
    longest = max(map(len, counts)) - 1
    rows = [np.pad(of_column[:-1], (0, longest + 1 - len(of_column))) for of_column in counts]
    return Histogram(list(columns), 1 / per_unit, np.array(rows), np.array([of_column[-1] for of_column in counts]))
