"""Disclosure risk and information loss of columns of numbers, from exact sums over the distinct pairs of rows.

A pair is a row before with its row after. Sums of partitions add up exactly, so they do not depend on where the tables
are. Only record linkage needs all distinct pairs at once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..encoding.column import Column, amounts
from ..engines.base import Counter
from ..errors import InputError
from ..marginals.set_counts import Find, SetCounts, SetRequest, Total
from ..treatment.continuous.moments import factor
from ..treatment.value_maps.new_values import is_numeric, is_text
from ..utils.config import resources
from ..utils.display import Record
from ..utils.exact_sums import ExactSum
from ..utils.memory import shown
from ..utils.percentiles import percentiles
from ..utils.validation import check_exist
from .record_linkage import Linkage, count_pairs, in_last_places, link_points
from .released_values import ReleasedColumn

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
# The percentiles that are estimated before and after.
PERCENTS = (5.0, 25.0, 50.0, 75.0, 95.0)
# The bytes of memory for each number of a pair of rows while rows are linked: codes, floats, and sorted floats.
LINK_BYTES = 64
# A row of the frame of estimates: column, estimate, other, before, after.
Estimate = tuple[Any, ...]


@dataclass(frozen=True)
class Continuous(Record):
    """The disclosure risk and the information loss of columns of numbers; x is a number before, x' after.

    Only cells with a value in both tables count. For linkage only rows with a value in all these columns, in both
    tables, count. Standard deviations s have the divisor n - 1. Figures are NaN without such cells.

    columns: list of names. The columns of numbers that are measured.
    interval: float. The half-width w of intervals, as asked for.
    il1s: float, 0 or more. The mean of abs(x - x') / (sqrt(2) s) over the cells, s of the column before (Mateo-Sanz,
        Sebe & Domingo-Ferrer 2004; Yancey, Winkler & Creecy 2002). sdcMicro's `dUtility` sums it. None if a column is
        constant before.
    eigenvalues: float, 0 or more. The sum of abs(e - e') / e, where e and e' are the eigenvalues of the correlations
        before and after, in descending order (sdcMicro's `dUtility` with "eigen"). None if a column before follows from
        the others.
    rows_within_deviations: float, 0 to 1. The share of the rows of which every x is at most w s' from x'; s' is the
        standard deviation after (interval disclosure SDID, Mateo-Sanz, Sebe & Domingo-Ferrer 2004; sdcMicro's `dRisk`
        from version 5.5.2 on, if each row has a number in both tables).
    rows_within_ranks: float, 0 to 1. The share of the rows of which every x lies between the numbers after whose ranks
        are at most w n from the rank of x' (rank interval disclosure, Domingo-Ferrer & Torra 2001). n: the numbers of
        the column after. Equal numbers have the mean of their ranks.
    by_distance: `Linkage`. The share of the rows after that are nearest to their own row before, by the Euclidean
        distance of x / s (Domingo-Ferrer & Torra 2001). If m rows are equally near, it counts as 1 / m of a row. None
        without linkage.
    by_rank: `Linkage`. The same share, by the Euclidean distance of the ranks of numbers, each in its own table
        (rank-based record linkage, Muralidhar & Domingo-Ferrer 2016). None without linkage.
    by_column: frame, one row for each column. il1s, and within_deviations and within_ranks: the share of its cells.
    """

    columns: Sequence[Hashable]
    interval: float
    il1s: float | None
    eigenvalues: float | None
    rows_within_deviations: float
    rows_within_ranks: float
    by_distance: Linkage | None
    by_rank: Linkage | None
    by_column: pd.DataFrame


class NumberColumn(NamedTuple):
    """A column of numbers. Arrays have one item for each number of a value (see `SharedValues`), NaN for missing.

    place: the place among the compared columns.
    released: the column before and after.
    values: float64 array. The values.
    counts: int64 arrays, before and after. The rows with each value.
    means, deviations: floats, before and after. The mean, and the standard deviation with divisor n - 1.
    ranks: float64 arrays, before and after. Twice the rank of each value among the values of a table.
    lows, highs: float64 arrays. The ends of the intervals around a value after: by deviations, then by ranks.
    """

    place: int
    released: ReleasedColumn
    values: Floats
    counts: Sequence[npt.NDArray[np.int64]]
    means: Sequence[float]
    deviations: Sequence[float]
    ranks: Sequence[Floats]
    lows: Sequence[Floats]
    highs: Sequence[Floats]

    @classmethod
    def from_released(cls, place: int, released: ReleasedColumn, interval: float) -> NumberColumn:
        """Return a column of numbers. interval: see `Continuous.interval`."""
        values = amounts(released.shared.column(released.name))
        counts = [np.append(own[:-1], 0) for own in (released.before, released.after)]
        means, deviations = zip(*(moments(values, own) for own in counts), strict=True)
        order = np.argsort(values[:-1])
        ranks = [_twice_ranks(order, own) for own in counts]
        used = order[counts[1][order] > 0]
        middles, reach = ranks[1][used], math.floor(2 * Fraction(repr(interval)) * int(counts[1].sum()))
        lows, highs = ((values + sign * deviations[1], np.full(len(values), np.nan)) for sign in (-interval, interval))
        lows[1][used] = values[used[np.searchsorted(middles, middles - reach)]]
        highs[1][used] = values[used[np.searchsorted(middles, middles + reach, "right") - 1]]
        return cls(place, released, values, counts, means, deviations, ranks, lows, highs)


def _twice_ranks(order: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> Floats:
    """Return twice the mean rank, from 1/2, of each value. order: the values in order. counts: rows of each value."""
    ranks = np.full(len(counts), np.nan)
    ranks[order] = 2 * np.cumsum(counts[order]) - counts[order]
    return ranks


def moments(values: Floats, counts: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Return the mean of numbers, and their standard deviation with divisor n - 1; NaN for too few numbers.

    counts: how often each number occurs; NaN occurs never.
    """
    some = counts > 0
    mean = ExactSum.from_numbers(values[some], counts[some]).mean
    squares = ExactSum.from_numbers((values[some] - mean) ** 2, counts[some])
    return mean, math.sqrt(squares.over(squares.terms - 1)) if squares.terms > 1 else math.nan


def choose_numbers(
    columns: Sequence[ReleasedColumn], asked: Sequence[Hashable] | None, interval: float
) -> list[NumberColumn]:
    """Return the columns of numbers to measure.

    columns: all compared columns. asked: names; None for all in which numbers changed. interval: see
    `Continuous.interval`. Raises InputError for a column that was dropped or has values that are no finite numbers, and
    ColumnNotFoundError.
    """
    names = [column.name for column in columns]
    changed = (column.name for column in columns if column.joint.changed and why_no_numbers(column) is None)
    chosen = list(changed if asked is None else asked)
    check_exist("numbers", chosen, names, "the columns that are compared")
    for name in chosen:
        reason = why_no_numbers(columns[names.index(name)])
        if reason is not None:
            raise InputError(
                f"numbers: column {name!r}: expected finite numbers before and after, got {reason}. Leave it out."
            )
    return [NumberColumn.from_released(names.index(name), columns[names.index(name)], interval) for name in chosen]


def why_no_numbers(column: ReleasedColumn) -> str | None:
    """Return why a column has no numbers that can be measured; None if it has."""
    if column.kind == "dropped" or column.is_lost:
        return "no values after"
    if not is_numeric(column.shared.labels.type):
        return "texts" if is_text(column.shared.labels.type) else f"{column.shared.labels.type} values"
    values = amounts(column.shared.column(column.name))[:-1]
    # Squares of larger numbers are infinite.
    return None if (np.abs(values) < 1e150).all() else "infinite or too large numbers"


class PairSums(NamedTuple):
    """Sums over distinct pairs of rows, for c columns of numbers.

    pairs: the number of distinct pairs.
    cells: int64 (3, c). The cells with a value in both tables, those of them within deviations, and within ranks.
    rows: int64 (3,). The rows with such a cell, and those of which all such cells are within deviations, or ranks.
    sums: by column the sum of abs(x - x') over these cells; then, for the tables before and after, the sums of u and of
        u v over the rows with a value in all columns. u and v are (x - mean) / s of two columns.
    """

    pairs: int
    cells: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    sums: Sequence[ExactSum]

    @classmethod
    def from_pairs(
        cls, columns: Sequence[NumberColumn], codes: Sequence[npt.NDArray[np.int64]], times: npt.NDArray[np.int64]
    ) -> PairSums:
        """Return the sums. codes: numbers of values, by column before, then after. times: rows of each pair."""
        released = codes[len(columns) :]
        before = np.array([column.values[code] for column, code in zip(columns, codes, strict=False)])
        after = np.array([column.values[code] for column, code in zip(columns, released, strict=True)])
        moved = np.abs(before - after)
        there = ~np.isnan(moved)
        masks = [there]
        for kind in range(2):
            lows = np.array([column.lows[kind][code] for column, code in zip(columns, released, strict=True)])
            highs = np.array([column.highs[kind][code] for column, code in zip(columns, released, strict=True)])
            masks.append(there & (before >= lows) & (before <= highs))
        every = [(mask | ~there).all(axis=0) & there.any(axis=0) for mask in masks]
        sums = [ExactSum.from_numbers(own[some], times[some]) for own, some in zip(moved, there, strict=True)]
        sums += [*_products(columns, 0, before, times), *_products(columns, 1, after, times)]
        return cls(
            len(times), np.array([mask @ times for mask in masks]), np.array([mask @ times for mask in every]), sums
        )

    @classmethod
    def total(cls, parts: Sequence[PairSums]) -> PairSums:
        """Return the sums over all partitions of a table."""
        pairs, cells, rows, sums = zip(*parts, strict=True)
        return cls(sum(pairs), sum(cells), sum(rows), [ExactSum.total(own) for own in zip(*sums, strict=True)])


def _products(
    columns: Sequence[NumberColumn], side: int, values: Floats, times: npt.NDArray[np.int64]
) -> Iterator[ExactSum]:
    """Yield the sums of u, then of u v, of `PairSums.sums` for the table before (side 0) or after (side 1)."""
    complete = ~np.isnan(values).any(axis=0)
    means = np.array([column.means[side] for column in columns])
    deviations = np.array([column.deviations[side] or np.inf for column in columns])
    scaled = (values[:, complete] - means[:, None]) / deviations[:, None]
    for own in scaled:
        yield ExactSum.from_numbers(own, times[complete])
    for one, other in combinations_with_replacement(scaled, 2):
        yield ExactSum.from_numbers(np.concatenate(_exact_products(one, other)), np.tile(times[complete], 2))


def _exact_products(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Return the rounded products of numbers, and what rounding took from each.

    Source: Dekker, A Floating-Point Technique for Extending the Available Precision (1971).
    """
    (high, low), (other_high, other_low) = _halves(one), _halves(other)
    products = one * other
    return products, high * other_high - products + high * other_low + low * other_high + low * other_low


def _halves(numbers: Floats) -> tuple[Floats, Floats]:
    """Return two numbers of half of the digits for each number, whose sum is the number (Veltkamp's splitting)."""
    scaled = numbers * (2**27 + 1)
    high = scaled - (scaled - numbers)
    return high, numbers - high


def make_pair_sums(numbers: Sequence[NumberColumn], columns: Sequence[Column], total: Total) -> Find:
    """Return the function that finds the `PairSums` of a partition. numbers: the columns of numbers."""
    known: list[npt.NDArray[np.int64]] = []

    def find(set_: Sequence[int], counter: Counter, place: int) -> PairSums:
        if not known:
            shared = [column.released.shared for column in numbers]
            known.extend(own.numbers(columns[number]) for own, number in zip([*shared, *shared], set_, strict=True))
        rows = counter.combinations(place, ordered=False)
        codes = [own[code] for own, code in zip(known, rows.codes, strict=True)]
        return PairSums.from_pairs(numbers, codes, rows.counts)

    return find


def measure_continuous(
    counts: SetCounts, columns: Sequence[ReleasedColumn], asked: Any, interval: float, linkage: Any, seed: int
) -> tuple[Continuous | None, list[Estimate]]:
    """Return the figures of the columns of numbers of a joined table, and the rows of the frame of estimates.

    asked, interval, linkage, seed: arguments of `gpupif.compare`. Raises InputError, see `choose_numbers`, and if the
    pairs to be linked do not fit into memory.
    """
    import pandas as pd

    chosen = choose_numbers(columns, asked, interval)
    if not chosen:
        return None, []
    both = [*(column.place for column in chosen), *(len(columns) + column.place for column in chosen)]
    sums = PairSums.total(counts.count([SetRequest(both)], partial(make_pair_sums, chosen)).found[0])
    correlations, covariances = zip(*(_matrices(chosen, side, sums) for side in range(2)), strict=True)
    cells, within, in_ranks = sums.cells
    lost = [
        moved.over(max(1, moved.terms)) / (math.sqrt(2) * column.deviations[0])
        if column.deviations[0] > 0
        else math.nan
        for column, moved in zip(chosen, sums.sums, strict=False)
    ]
    names = [column.released.name for column in chosen]
    by_column = pd.DataFrame(
        {"il1s": lost, "within_deviations": _shares(within, cells), "within_ranks": _shares(in_ranks, cells)},
        index=pd.Index(names, name="column", tupleize_cols=False),
    )
    rows, near, near_in_rank = sums.rows.tolist()
    il1s = None if math.isnan(sum(lost)) else math.fsum(np.multiply(lost, cells).tolist()) / max(1, int(cells.sum()))
    linked = (None, None) if linkage is None else _link(counts, chosen, both, sums.pairs, linkage, seed)
    measured = Continuous(
        columns=names,
        interval=interval,
        il1s=il1s,
        eigenvalues=_eigenvalues(*correlations),
        rows_within_deviations=near / rows if rows else math.nan,
        rows_within_ranks=near_in_rank / rows if rows else math.nan,
        by_distance=linked[0],
        by_rank=linked[1],
        by_column=by_column,
    )
    return measured, list(_estimates(chosen, correlations, covariances))


def _shares(some: npt.NDArray[np.int64], cells: npt.NDArray[np.int64]) -> Floats:
    """Return some / cells; NaN for no cells."""
    return np.asarray(np.divide(some, cells, out=np.full(len(cells), np.nan), where=cells > 0))


def _matrices(columns: Sequence[NumberColumn], side: int, sums: PairSums) -> tuple[Floats, Floats]:
    """Return the correlations and the covariances, (c, c), of the rows with a value in all columns; NaN for too few."""
    size = len(columns)
    own = sums.sums[size:] if side == 0 else sums.sums[(len(sums.sums) + size) // 2 :]
    first, products = own[:size], own[size : size + size * (size + 1) // 2]
    matrix, rows = np.full((size, size), np.nan), first[0].terms
    for (one, other), product in zip(combinations_with_replacement(range(size), 2), products, strict=True):
        if rows > 1:
            # The sums are exact whole numbers in units, so that nothing cancels.
            off = Fraction(first[one].units * first[other].units, rows << 1074)
            matrix[one, other] = matrix[other, one] = float((product.units - off) / (1 << 1074) / (rows - 1))
    spread = np.sqrt(np.diag(matrix))
    deviations = np.array([column.deviations[side] for column in columns])
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = matrix / np.outer(spread, spread)
    return correlations, matrix * np.outer(deviations, deviations)


def _eigenvalues(before: Floats, after: Floats) -> float | None:
    """Return `Continuous.eigenvalues`. before, after: correlations."""
    if not (np.isfinite(before).all() and np.isfinite(after).all() and np.diag(factor(before)).all()):
        return None
    own, new = (np.linalg.eigvalsh(matrix)[::-1] for matrix in (before, after))
    return float((np.abs(own - new) / own).sum())


def _coefficients(correlations: Floats, covariances: Floats, place: int) -> Floats:
    """Return the least-squares coefficients of a column on the others; NaN if another column follows from the rest."""
    others = np.delete(np.arange(len(correlations)), place)
    among = correlations[np.ix_(others, others)]
    if not np.isfinite(correlations).all() or not np.diag(factor(among)).all():
        return np.full(len(others), np.nan)
    spread = np.sqrt(np.diag(covariances))
    return np.asarray(np.linalg.solve(among, correlations[others, place]) * spread[place] / spread[others])


def _estimates(
    columns: Sequence[NumberColumn], correlations: Sequence[Floats], covariances: Sequence[Floats]
) -> Iterator[Estimate]:
    """Yield the rows of the frame of estimates, see `Comparison.estimates`."""
    names = [column.released.name for column in columns]
    for column, name in zip(columns, names, strict=True):
        yield name, "mean", None, *column.means
        yield name, "deviation", None, *column.deviations
        yield name, "variance", None, *(deviation**2 for deviation in column.deviations)
        quantiles = [percentiles(partial(iter, [(column.values[:-1], own[:-1])]), PERCENTS) for own in column.counts]
        for percent, old, new in zip(PERCENTS, *quantiles, strict=True):
            yield name, f"q{percent:g}", None, old, new
    for one, other in combinations(range(len(names)), 2):
        for kind, matrices in (("covariance", covariances), ("correlation", correlations)):
            yield names[one], kind, names[other], *(float(matrix[one, other]) for matrix in matrices)
    for place, name in enumerate(names if len(names) > 1 else []):
        both = [_coefficients(*own, place) for own in zip(correlations, covariances, strict=True)]
        for other, old, new in zip([*names[:place], *names[place + 1 :]], *both, strict=True):
            yield name, "coefficient", other, float(old), float(new)


def _link(
    counts: SetCounts, columns: Sequence[NumberColumn], both: Sequence[int], pairs: int, linkage: Any, seed: int
) -> tuple[Linkage | None, Linkage | None]:
    """Return the linkage by distance and by rank.

    both: places of the columns before, then after, of the joined table. Raises InputError if the pairs do not fit into
    memory.
    """
    needed, allowed = LINK_BYTES * len(both) * pairs, resources().memory
    if needed > allowed:
        raise InputError(
            f"linkage: {pairs:,} distinct pairs of rows before and after need {shown(needed)} of memory, and "
            f"{shown(allowed)} are allowed. Allow more (gpupif.config(memory_limit=)), name fewer columns, numbers=, "
            "or say linkage=None."
        )
    released = [column.released for column in columns]
    numbers, times = count_pairs(counts, [*released, *released], both)
    sides = numbers[: len(columns)], numbers[len(columns) :]

    def link(points: Sequence[Sequence[Floats]], scales: Sequence[float]) -> Linkage | None:
        mine, theirs = (
            np.column_stack([own[code] for own, code in zip(table, side, strict=True)])
            for table, side in zip(points, sides, strict=True)
        )
        complete = ~np.isnan(mine).any(axis=1) & ~np.isnan(theirs).any(axis=1)
        return link_points(theirs[complete], mine[complete], times[complete], np.array(scales), linkage, seed)

    values, units = zip(*(in_last_places(column.values) for column in columns), strict=True)
    ranks = [[column.ranks[side] for column in columns] for side in range(2)]
    spread = [column.deviations[0] for column in columns]
    scales = [unit / own if own > 0 else 0.0 for unit, own in zip(units, spread, strict=True)]
    return link([values, values], scales), link(ranks, [1.0] * len(columns))
