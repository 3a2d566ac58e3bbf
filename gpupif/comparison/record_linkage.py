"""Record linkage by distance: the share of rows that are nearest to their own row of the treated table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
    counted = counts.count([SetRequest(both)], make_rows)
    partitions = counted.found[0]
    codes = [np.concatenate(own) for own in zip(*(partition[0] for partition in partitions), strict=True)]
    multiplicity = np.concatenate([partition[1] for partition in partitions])
    numbers = [
        column.shared.numbers(counted.columns[place])[own]
        for column, place, own in zip([*used, *used], both, codes, strict=True)
    ]
    # If the released value is a function of the value, an attacker who knows the value knows the released value.
    before = [column.detail[own] for column, own in zip(used, numbers, strict=False)]
    after = numbers[len(used) :]
    return _link(used, before, after, multiplicity, linkage, seed)


def make_rows(columns: Sequence[Column], total: Total) -> Find:
    """Return the function that finds the distinct rows of a partition, and their multiplicity."""

    def find(set_: Sequence[int], counter: Counter, place: int) -> tuple[list[npt.NDArray[Any]], npt.NDArray[Any]]:
        rows = counter.combinations(place, ordered=False)
        return rows.codes, rows.counts

    return find


def _link(
    columns: Sequence[ReleasedColumn],
    before: Sequence[npt.NDArray[np.int64]],
    after: Sequence[npt.NDArray[np.int64]],
    multiplicity: npt.NDArray[np.int64],
    linkage: Any,
    seed: int,
) -> Linkage:
    """Link rows. before, after: by column the numbers of values, for each distinct pair of a row before and after.

    multiplicity: of each pair.
    """
    order = _order(columns, [*before, *after])
    before, after = [own[order] for own in before], [own[order] for own in after]
    all_rows = multiplicity[order]
    hidden = np.logical_and.reduce([own == column.shared.missing for column, own in zip(columns, after, strict=True)])
    rows, which = _distinct(before)
    treated, own = _distinct([numbers[~hidden] for numbers in after])
    weights = np.zeros(treated.shape[0], np.int64)
    np.add.at(weights, own, all_rows[~hidden])
    number = np.full(len(hidden), -1, np.int64)
    number[~hidden] = own
    total = int(all_rows.sum())
    size = _sample_size(linkage, total, len(rows), len(treated))
    drawn = all_rows
    if size is not None:
        picked = np.sort(np.random.default_rng(seed).choice(total, size, replace=False))
        drawn = np.bincount(np.searchsorted(np.cumsum(all_rows), picked, "right"), minlength=len(hidden))
    looked = np.flatnonzero((drawn > 0) & ~hidden)
    shares = _shares(columns, (rows, which[looked]), (treated, number[looked]), weights)
    linked = math.fsum((shares * drawn[looked]).tolist())
    asked = total if size is None else size
    error = None
    if size is not None and size > 1:
        share = linked / asked
        squares = math.fsum((shares * shares * drawn[looked]).tolist()) / asked - share * share
        error = math.sqrt(max(0.0, squares) / (asked - 1) * (total - asked) / total)
    return Linkage(linked / asked, linked, asked, None if size is None else seed, error)


def _order(columns: Sequence[ReleasedColumn], numbers: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return an order of the pairs by their values: with it a sample is the same for every kind of table."""
    ranks = [value_order(column.shared.column(column.name)) for column in columns]
    keys = [ranks[place % len(columns)][own] for place, own in enumerate(numbers)]
    return np.lexsort(keys[::-1])


def _distinct(numbers: Sequence[npt.NDArray[np.int64]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct rows (rows, columns), and the number of the distinct row of each row."""
    distinct, which = np.unique(np.column_stack(numbers), axis=0, return_inverse=True)
    return distinct, which.reshape(-1).astype(np.int64)


def _amounts(
    columns: Sequence[ReleasedColumn], tables: Sequence[npt.NDArray[np.int64]]
) -> tuple[list[npt.NDArray[np.float64]], npt.NDArray[np.float64]]:
    """Return the values of tables as the kernel compares them, and the scale of each column.

    tables: numbers of values, arrays (rows, columns). The scale of a column of numbers is 1 over its range; a scale of
    0 tells the kernel to compare values as equal or not.
    """
    values_of = [np.empty(table.shape) for table in tables]
    scales = np.zeros(len(columns))
    for place, column in enumerate(columns):
        values = amounts(column.shared.column(column.name))
        known = values[: column.shared.missing]
        if len(known) and np.isfinite(known).all():
            span = float(known.max() - known.min())
            scales[place] = 1 / span if span > 0 and math.isfinite(1 / span) else 0.0
        else:
            values = np.arange(column.size, dtype=np.float64)
            values[column.shared.missing] = np.nan
        for table, own in zip(tables, values_of, strict=True):
            own[:, place] = values[table[:, place]]
    return values_of, scales


def _sample_size(linkage: Any, rows: int, distinct: int, others: int) -> int | None:
    """Return how many rows to draw, None for all rows. distinct, others: the distinct rows before and after.

    Raises InputError if "exact" linkage has too many pairs, or more rows are to be drawn than there are.
    """
    if linkage in ("auto", "exact"):
        if distinct * others <= MOST_PAIRS:
            return None
        if linkage == "exact":
            raise InputError(
                f"linkage: 'exact' compares {distinct:,} distinct rows with {others:,}, expected at most "
                f"{MOST_PAIRS:,} pairs. Draw a sample, linkage={SAMPLE_ROWS}, or name fewer quasi-identifiers."
            )
        return min(SAMPLE_ROWS, rows)
    if linkage > rows:
        raise InputError(f"linkage: expected at most {rows:,} rows to draw, all rows of the table; got {linkage:,}.")
    return int(linkage)


def _shares(
    columns: Sequence[ReleasedColumn],
    rows: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    treated: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    multiplicity: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """Return for each pair of a row and its own treated row the share of the row that is linked: 0, or 1 / m.

    rows: the distinct rows before, array (rows, columns), and for each pair the number of its row. treated: likewise
    the distinct rows after. multiplicity: of each distinct row after.
    """
    used, which = np.unique(rows[1], return_inverse=True)
    which, own = which.reshape(-1).astype(np.int64), treated[1]
    if not len(used):
        return np.zeros(0)
    (mine, theirs), scales = _amounts(columns, [rows[0][used], treated[0]])
    least, ties = np.empty(len(used)), np.empty(len(used), np.int64)
    with Workers() as workers:
        chunks = min(len(used), 16 * workers.threads)
        edges = [len(used) * chunk // chunks for chunk in range(chunks + 1)]
        tasks = [(start, stop, mine, theirs, multiplicity, scales, least, ties) for start, stop in pairwise(edges)]
        workers.run(kernels.find_nearest, tasks)
    is_nearest = np.empty(len(which), np.bool_)
    kernels.find_own(mine, theirs, which, own, scales, least, is_nearest)
    return np.where(is_nearest, 1 / ties[which], 0.0)
