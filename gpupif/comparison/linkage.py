"""Record linkage by distance: how many rows are nearest to their own row of the treated table."""

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
from ..engines.counting import Counter
from ..errors import InputError
from ..marginals.set_counts import Find, SetCounts, SetRequest, Total
from ..rows.threads import Workers
from ..utils.display import Record
from ..utils.validation import brief, is_whole
from .released import ReleasedColumn

# Pairs of different rows that are compared at most, and rows of a sample where nobody says how many.
MOST_PAIRS, SAMPLE_ROWS = 10**10, 1000


@dataclass(frozen=True)
class Linkage(Record):
    """Who is found again by the nearest row (distance-based record linkage, Domingo-Ferrer & Torra 2001).

    share: of the rows, how many have their own row of the treated table nearest to them, from 0 to 1; one that shares
    this place with others counts as a part of a row, one over how many there are. Rows without any value left are
    nobody's nearest, and not found. rows: that were looked for, all, or a sample drawn by `seed` (None where it is
    none). linked: of these. standard_error: of the share, by the sample; None without one.

    Values before are at the released detail. The distance is Gower's (1971): the mean over the quasi-identifiers of the
    difference of two numbers over the range of the column, and of 0 or 1 for other values, equal or not; so for missing
    ones.
    """

    share: float
    linked: float
    rows: int
    seed: int | None
    standard_error: float | None


def check_linkage(linkage: Any, seed: Any) -> None:
    """Raise InputError for what `gpupif.compare` cannot link by."""
    if not (linkage is None or linkage in ("auto", "exact") or (is_whole(linkage) and linkage >= 1)):
        raise InputError(f"linkage: expected 'auto', 'exact', a number of rows to draw, or None; got {brief(linkage)}.")
    if not is_whole(seed) or seed < 0:
        raise InputError(f"seed: expected a whole number from 0, got {brief(seed)}.")


def link_rows(
    counts: SetCounts, columns: Sequence[ReleasedColumn], places: Sequence[int], linkage: Any, seed: int
) -> Linkage | None:
    """Link the rows of joined tables. columns: all of these; places: of those that are compared.

    linkage, seed: as of `gpupif.compare`. None where none of the columns was perturbed, and nobody asked for more.
    """
    places = [place for place in places if columns[place].kind != "dropped"]
    perturbed = any(columns[place].kind == "perturbed" for place in places)
    if linkage is None or not places or (linkage == "auto" and not perturbed):
        return None
    used = [columns[place] for place in places]
    both = [*places, *(len(columns) + place for place in places)]
    found = counts.count([SetRequest(both)], make_rows)
    parts = found.found[0]
    codes = [np.concatenate(own) for own in zip(*(part[0] for part in parts), strict=True)]
    times = np.concatenate([part[1] for part in parts])
    numbers = [
        column.shared.numbers(found.columns[place])[own]
        for column, place, own in zip([*used, *used], both, codes, strict=True)
    ]
    # Whoever knows a value knows what became of it, where that is a function of it.
    before = [column.detail[own] for column, own in zip(used, numbers, strict=False)]
    after = numbers[len(used) :]
    return _link(used, before, after, times, linkage, seed)


def make_rows(columns: Sequence[Column], total: Total) -> Find:
    """Finds the different rows, and how many there are of each."""

    def find(set_: Sequence[int], counter: Counter, place: int) -> tuple[list[npt.NDArray[Any]], npt.NDArray[Any]]:
        found = counter.combinations(place, ordered=False)
        return found.codes, found.counts

    return find


def _link(
    columns: Sequence[ReleasedColumn],
    before: Sequence[npt.NDArray[np.int64]],
    after: Sequence[npt.NDArray[np.int64]],
    times: npt.NDArray[np.int64],
    linkage: Any,
    seed: int,
) -> Linkage:
    """From the different pairs of a row before and after, and how many there are of each."""
    order = _order(columns, [*before, *after])
    before, after = [own[order] for own in before], [own[order] for own in after]
    all_times = times[order]
    hidden = np.logical_and.reduce([own == column.shared.missing for column, own in zip(columns, after, strict=True)])
    rows, which = _different(before)
    targets, own = _different([numbers[~hidden] for numbers in after])
    weights = np.zeros(targets.shape[0], np.int64)
    np.add.at(weights, own, all_times[~hidden])
    number = np.full(len(hidden), -1, np.int64)
    number[~hidden] = own
    total = int(all_times.sum())
    size = _sample_size(linkage, total, len(rows), len(targets))
    drawn = all_times
    if size is not None:
        picked = np.sort(np.random.default_rng(seed).choice(total, size, replace=False))
        drawn = np.bincount(np.searchsorted(np.cumsum(all_times), picked, "right"), minlength=len(hidden))
    looked = np.flatnonzero((drawn > 0) & ~hidden)
    shares = _shares(columns, (rows, which[looked]), (targets, number[looked]), weights)
    linked = math.fsum((shares * drawn[looked]).tolist())
    asked = total if size is None else size
    error = None
    if size is not None and size > 1:
        share = linked / asked
        squares = math.fsum((shares * shares * drawn[looked]).tolist()) / asked - share * share
        error = math.sqrt(max(0.0, squares) / (asked - 1) * (total - asked) / total)
    return Linkage(linked / asked, linked, asked, None if size is None else seed, error)


def _order(columns: Sequence[ReleasedColumn], numbers: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Rows by their values, whatever numbers these have, so that a sample is the same wherever the table lies."""
    ranks = [value_order(column.shared.column(column.name)) for column in columns]
    keys = [ranks[place % len(columns)][own] for place, own in enumerate(numbers)]
    return np.lexsort(keys[::-1])


def _different(numbers: Sequence[npt.NDArray[np.int64]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The different rows (rows, columns), and which of them each row is."""
    different, which = np.unique(np.column_stack(numbers), axis=0, return_inverse=True)
    return different, which.reshape(-1).astype(np.int64)


def _amounts(
    columns: Sequence[ReleasedColumn], tables: Sequence[npt.NDArray[np.int64]]
) -> tuple[list[npt.NDArray[np.float64]], npt.NDArray[np.float64]]:
    """Rows of numbers of values as the kernel compares them (rows, columns), and the scales of the columns."""
    found = [np.empty(table.shape) for table in tables]
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
        for table, own in zip(tables, found, strict=True):
            own[:, place] = values[table[:, place]]
    return found, scales


def _sample_size(linkage: Any, rows: int, different: int, others: int) -> int | None:
    """How many rows to draw; None: all are looked for. Raises InputError where these are too many pairs."""
    if linkage in ("auto", "exact"):
        if different * others <= MOST_PAIRS:
            return None
        if linkage == "exact":
            raise InputError(
                f"linkage: 'exact' compares {different:,} different rows with {others:,}, expected at most "
                f"{MOST_PAIRS:,} pairs. Draw a sample, linkage={SAMPLE_ROWS}, or name fewer quasi-identifiers."
            )
        return min(SAMPLE_ROWS, rows)
    if linkage > rows:
        raise InputError(f"linkage: expected at most {rows:,} rows to draw, those of the table; got {linkage:,}.")
    return int(linkage)


def _shares(
    columns: Sequence[ReleasedColumn],
    rows: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    targets: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    times: npt.NDArray[np.int64],
) -> npt.NDArray[np.float64]:
    """For each pair of a row and its own row of the treated table, the share of it that is found.

    rows, targets: the different ones, and which of these it is in each pair. times: how often each target is there.
    """
    used, which = np.unique(rows[1], return_inverse=True)
    which, own = which.reshape(-1).astype(np.int64), targets[1]
    if not len(used):
        return np.zeros(0)
    (mine, theirs), scales = _amounts(columns, [rows[0][used], targets[0]])
    least, ties = np.empty(len(used)), np.empty(len(used), np.int64)
    with Workers() as workers:
        pieces = min(len(used), 16 * workers.threads)
        edges = [len(used) * piece // pieces for piece in range(pieces + 1)]
        tasks = [(start, stop, mine, theirs, times, scales, least, ties) for start, stop in pairwise(edges)]
        workers.run(kernels.find_nearest, tasks)
    found = np.empty(len(which), np.bool_)
    kernels.find_own(mine, theirs, which, own, scales, least, found)
    return np.where(found, 1 / ties[which], 0.0)
