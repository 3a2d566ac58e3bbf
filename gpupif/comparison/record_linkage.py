"""Record linkage by distance: the share of rows that are nearest to their own row of the treated table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import nearest as kernels

from ..encoding.column import Column, amounts, value_order
from ..engines.base import Counter
from ..errors import InputError
from ..marginals.set_counts import Find, SetCounts, SetRequest, Total
from ..rows.threads import Workers
from ..utils.display import Record
from ..utils.validation import brief, is_whole
from .released_values import ReleasedColumn

# At most MOST_PAIRS pairs of distinct rows are compared; else SAMPLE_ROWS rows are drawn.
MOST_PAIRS, SAMPLE_ROWS = 10**10, 1000
# Of so many columns of numbers, a tree of boxes finds the nearest rows without comparing most pairs. Its leaves have
# fewer than 2 LEAF_POINTS points.
TREE_COLUMNS, LEAF_POINTS = 5, 16
# Whole numbers below it are exact as floats.
MOST_WHOLE = 1 << 53
# A function like `_shares`, without its first argument.
FindShares = Callable[..., npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Linkage(Record):
    """Rows that are linked to their own treated row, since it is the nearest (Domingo-Ferrer & Torra 2001).

    A row is linked if its own row of the treated table is nearest to it. If m treated rows are equally near, it counts
    as 1 / m of a row. Treated rows without any value are nearest to no row, and their own rows are not linked.

    The distance is Gower's (1971): the mean over the quasi-identifiers. For numbers it is their difference over the
    range of the column, for other values 0 if they are equal, else 1; likewise if a value is missing. Values before are
    at the released detail, see `gpupif.compare`.

    share: float, 0 to 1. The share of the rows that are linked.
    linked: float. The number of the rows that are linked.
    rows: int. The rows that were looked for: all rows, or a sample.
    seed: int. The seed of the sample; None without a sample.
    standard_error: float. The standard error of the share; None without a sample.
    """

    share: float
    linked: float
    rows: int
    seed: int | None
    standard_error: float | None


def check_linkage(linkage: Any, seed: Any) -> None:
    """Raise InputError for a linkage or a seed that `gpupif.compare` does not take."""
    if not (linkage is None or linkage in ("auto", "exact") or (is_whole(linkage) and linkage >= 1)):
        raise InputError(f"linkage: expected 'auto', 'exact', a number of rows to draw, or None; got {brief(linkage)}.")
    if not is_whole(seed) or seed < 0:
        raise InputError(f"seed: expected a whole number from 0, got {brief(seed)}.")


def link_rows(
    counts: SetCounts, columns: Sequence[ReleasedColumn], places: Sequence[int], linkage: Any, seed: int
) -> Linkage | None:
    """Link the rows of a joined table.

    columns: all compared columns. places: of the quasi-identifiers among them. linkage, seed: the arguments of
    `gpupif.compare`. Returns None if linkage is None, or "auto" and no quasi-identifier was perturbed, or if all
    quasi-identifiers were dropped. Raises InputError for too many pairs or rows.
    """
    places = [place for place in places if columns[place].kind != "dropped"]
    perturbed = any(columns[place].kind == "perturbed" for place in places)
    if linkage is None or not places or (linkage == "auto" and not perturbed):
        return None
    used = [columns[place] for place in places]
    both = [*places, *(len(columns) + place for place in places)]
    numbers, multiplicity = count_pairs(counts, [*used, *used], both)
    # If the released value is a function of the value, an attacker who knows the value knows the released value.
    before = [column.detail[own] for column, own in zip(used, numbers, strict=False)]
    after = numbers[len(used) :]
    order = _order(used, [*before, *after])
    mine, theirs = (np.column_stack(own)[order] for own in (before, after))
    hidden = (theirs == [column.shared.missing for column in used]).all(axis=1)
    return _link(mine, theirs, multiplicity[order], hidden, linkage, seed, MOST_PAIRS, partial(_shares, used))


def count_pairs(
    counts: SetCounts, columns: Sequence[ReleasedColumn], places: Sequence[int]
) -> tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.int64]]:
    """Return the distinct rows of a joined table over some columns: the numbers of their values, and multiplicities."""
    counted = counts.count([SetRequest(places)], _make_rows)
    parts, multiplicities = zip(*counted.found[0], strict=True)
    numbers = [
        column.shared.numbers(counted.columns[place])[np.concatenate(codes)]
        for column, place, codes in zip(columns, places, zip(*parts, strict=True), strict=True)
    ]
    return numbers, np.concatenate(multiplicities)


def _make_rows(columns: Sequence[Column], total: Total) -> Find:
    """Return the function that finds the distinct rows of a partition, and their multiplicity."""

    def find(set_: Sequence[int], counter: Counter, place: int) -> tuple[list[npt.NDArray[Any]], npt.NDArray[Any]]:
        rows = counter.combinations(place, ordered=False)
        return rows.codes, rows.counts

    return find


def _link(
    before: npt.NDArray[Any],
    after: npt.NDArray[Any],
    all_rows: npt.NDArray[np.int64],
    hidden: npt.NDArray[np.bool_],
    linkage: Any,
    seed: int,
    most: float,
    find_shares: FindShares,
) -> Linkage:
    """Link rows. before, after: arrays (pairs, columns), the distinct pairs of a row and its own row, in order.

    all_rows: the rows of each pair. hidden: mask of the pairs whose row after is nearest to no row. most: the most
    pairs of distinct rows that are compared.
    """
    rows, which = _distinct(before)
    others, own = _distinct(after[~hidden])
    weights = np.zeros(len(others), np.int64)
    np.add.at(weights, own, all_rows[~hidden])
    number = np.full(len(hidden), -1, np.int64)
    number[~hidden] = own
    total = int(all_rows.sum())
    size = _sample_size(linkage, total, len(rows), len(others), most)
    drawn = all_rows
    if size is not None:
        picked = np.sort(np.random.default_rng(seed).choice(total, size, replace=False))
        drawn = np.bincount(np.searchsorted(np.cumsum(all_rows), picked, "right"), minlength=len(hidden))
    looked = np.flatnonzero((drawn > 0) & ~hidden)
    shares = np.zeros(0)
    if len(looked):
        used, mine = np.unique(which[looked], return_inverse=True)
        shares = find_shares(rows[used], others, weights, mine.reshape(-1).astype(np.int64), number[looked])
    linked = math.fsum((shares * drawn[looked]).tolist())
    asked = total if size is None else size
    error = None
    if size is not None and size > 1:
        share = linked / asked
        squares = math.fsum((shares * shares * drawn[looked]).tolist()) / asked - share * share
        error = math.sqrt(max(0.0, squares) / (asked - 1) * (total - asked) / total)
    return Linkage(linked / asked, linked, asked, None if size is None else seed, error)


def link_points(
    rows: npt.NDArray[np.float64],
    others: npt.NDArray[np.float64],
    multiplicity: npt.NDArray[np.int64],
    scales: npt.NDArray[np.float64],
    linkage: Any,
    seed: int,
) -> Linkage | None:
    """Link rows to others by the Euclidean distance; None without rows.

    rows, others: arrays (pairs, columns) of numbers, none missing, by distinct pair of a row and its own row among the
    others. multiplicity: of each pair. scales: the factor of differences in each column. linkage, seed: arguments of
    `gpupif.compare`. Raises InputError for too many pairs of rows with more than `TREE_COLUMNS` columns.
    """
    if not len(rows):
        return None
    order = np.lexsort([*others.T[::-1], *rows.T[::-1]])
    rows, others, multiplicity = rows[order], others[order], multiplicity[order]
    most = math.inf if rows.shape[1] <= TREE_COLUMNS else MOST_PAIRS
    wanted = linkage if isinstance(linkage, str) else min(linkage, int(multiplicity.sum()))
    hidden = np.zeros(len(rows), np.bool_)
    return _link(rows, others, multiplicity, hidden, wanted, seed, most, partial(_shares_of_points, scales))


def _order(columns: Sequence[ReleasedColumn], numbers: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return an order of the pairs by their values: with it a sample is the same for every kind of table."""
    ranks = [value_order(column.shared.column(column.name)) for column in columns]
    keys = [ranks[place % len(columns)][own] for place, own in enumerate(numbers)]
    return np.lexsort(keys[::-1])


def _distinct(rows: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the distinct rows (rows, columns), and the number of the distinct row of each row."""
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    return distinct, which.reshape(-1).astype(np.int64)


def _amounts(
    columns: Sequence[ReleasedColumn], tables: Sequence[npt.NDArray[np.int64]]
) -> tuple[list[npt.NDArray[np.float64]], npt.NDArray[np.float64], float]:
    """Return the values of tables as the kernel compares them, the scale of each column, and the longest distance in a
    column.

    tables: numbers of values, arrays (rows, columns). The scale of a column of numbers is the longest distance over its
    range; a scale of 0 tells the kernel to compare values as equal or not. The longest distance is the least common
    multiple of the ranges, so that distances are whole numbers; or 1 if floats do not hold such large numbers.
    """
    values_of = [np.empty(table.shape) for table in tables]
    spans = np.zeros(len(columns))
    for place, column in enumerate(columns):
        values, _ = in_last_places(amounts(column.shared.column(column.name)))
        known = values[: column.shared.missing]
        if len(known) and np.isfinite(known).all():
            span = float(known.max() - known.min())
            spans[place] = span if span > 0 and math.isfinite(1 / span) else 0.0
        else:
            values = np.arange(column.size, dtype=np.float64)
            values[column.shared.missing] = np.nan
        for table, own in zip(tables, values_of, strict=True):
            own[:, place] = values[table[:, place]]
    ranges = [float(span) for span in spans if span]
    whole = math.lcm(*map(int, ranges)) if all(map(float.is_integer, ranges)) else MOST_WHOLE
    longest = float(whole) if whole * len(columns) < MOST_WHOLE else 1.0
    return values_of, np.divide(longest, spans, out=np.zeros(len(spans)), where=spans > 0), longest


def in_last_places(numbers: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], float]:
    """Return decimal numbers as whole numbers of units of their last decimal place, and that unit.

    Equal distances are then equal floats: 0.3 - 0.2 is no other than 0.2 - 0.1. Numbers of too many digits, or infinite
    ones, are returned as they are, with a unit of 1. NaN stays NaN.
    """
    known = numbers[~np.isnan(numbers)]
    for places in range(16):
        tens = 10.0**places
        if not (np.abs(known) * tens < MOST_WHOLE / 2).all():
            break
        if (np.rint(known * tens) / tens == known).all():
            return np.rint(numbers * tens), 1 / tens
    return numbers, 1.0


def _sample_size(linkage: Any, rows: int, distinct: int, others: int, most: float) -> int | None:
    """Return how many rows to draw, None for all rows. distinct, others: the distinct rows of both tables.

    most: the most pairs of these that are compared. Raises InputError if "exact" linkage has too many pairs, or more
    rows are to be drawn than there are.
    """
    if linkage in ("auto", "exact"):
        if distinct * others <= most:
            return None
        if linkage == "exact":
            raise InputError(
                f"linkage: 'exact' compares {distinct:,} distinct rows with {others:,}, expected at most "
                f"{most:,} pairs. Draw a sample, linkage={SAMPLE_ROWS}, or name fewer columns."
            )
        return min(SAMPLE_ROWS, rows)
    if linkage > rows:
        raise InputError(f"linkage: expected at most {rows:,} rows to draw, all rows of the table; got {linkage:,}.")
    return int(linkage)


def _shares(
    columns: Sequence[ReleasedColumn],
    rows: npt.NDArray[np.int64],
    treated: npt.NDArray[np.int64],
    multiplicity: npt.NDArray[np.int64],
    which: npt.NDArray[np.int64],
    own: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """Return for each pair of a row and its own treated row the share of the row that is linked: 0, or 1 / m.

    rows, treated: the distinct rows before and after, arrays (rows, columns). multiplicity: of each distinct row after.
    which, own: for each pair the number of its row, and of its own treated row.
    """
    (mine, theirs), scales, whole = _amounts(columns, [rows, treated])

    def find(start: int, stop: int, least: npt.NDArray[np.float64], ties: npt.NDArray[np.int64]) -> None:
        kernels.find_nearest(start, stop, mine, theirs, multiplicity, scales, whole, least, ties)

    least, ties = _nearest(find, len(rows))
    is_nearest = np.empty(len(which), np.bool_)
    kernels.find_own(mine, theirs, which, own, scales, whole, least, is_nearest)
    return np.where(is_nearest, 1 / ties[which], 0.0)


def _shares_of_points(
    scales: npt.NDArray[np.float64],
    rows: npt.NDArray[np.float64],
    others: npt.NDArray[np.float64],
    multiplicity: npt.NDArray[np.int64],
    which: npt.NDArray[np.int64],
    own: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """Return the shares by the Euclidean distance, see `_shares`. rows, others: distinct rows of numbers."""
    order, edges, lows, highs = _tree(others, scales)
    points, weights = others[order], multiplicity[order]

    def find(start: int, stop: int, least: npt.NDArray[np.float64], ties: npt.NDArray[np.int64]) -> None:
        stack = np.empty(len(edges) + 1, np.int64)
        kernels.find_nearest_points(start, stop, rows, points, weights, scales, edges, lows, highs, stack, least, ties)

    least, ties = _nearest(find, len(rows))
    apart = np.zeros(len(which))
    for column in range(rows.shape[1]):
        # The kernel adds up in the same order, so that equal distances are equal floats.
        apart += ((rows[which, column] - others[own, column]) * scales[column]) ** 2
    return np.where(apart == least[which], 1 / ties[which], 0.0)


def _tree(
    points: npt.NDArray[np.float64], scales: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return a tree of boxes of points: their order, and `edges`, `lows`, `highs` as `find_nearest_points` has them.

    Each box is cut into halves at the median of the column with the largest range, until it has few points.
    """
    order, levels = np.arange(len(points)), max(0, math.floor(math.log2(len(points) / LEAF_POINTS)))
    lows, highs = (np.empty(((2 << levels) - 1, points.shape[1])) for _ in range(2))
    edges = np.array([0, len(points)])
    for level in range(levels + 1):
        if level:
            edges = np.insert(edges, np.arange(1, len(edges)), (edges[:-1] + edges[1:]) // 2)
        for box, (start, stop) in enumerate(pairwise(edges.tolist()), (1 << level) - 1):
            own = points[order[start:stop]]
            lows[box], highs[box] = own.min(axis=0), own.max(axis=0)
            if level < levels:
                widest = int(np.argmax((highs[box] - lows[box]) * scales))
                order[start:stop] = order[start:stop][np.argpartition(own[:, widest], (start + stop) // 2 - start)]
    return order, edges, lows, highs


def _nearest(
    find: Callable[[int, int, Any, Any], None], rows: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return, by row, the least distance, and how many rows are at it.

    find: sets both for some rows, in a thread. Its arguments are the first row, the end, and both arrays.
    """
    least, ties = np.empty(rows), np.empty(rows, np.int64)
    with Workers() as workers:
        chunks = min(rows, 16 * workers.threads)
        edges = pairwise(rows * chunk // chunks for chunk in range(chunks + 1))
        workers.run(find, [(start, stop, least, ties) for start, stop in edges])
    return least, ties
