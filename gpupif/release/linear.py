"""The totals of a table as linear equations, and linear programs about its suppressed cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
# The tolerance of HiGHS, and the largest figure of its programs: larger ones are scaled.
TOLERANCE, LARGE = 1e-7, 1e6
UNBOUNDED = 3


def need_scipy(argument: str) -> ModuleType:
    """Return SciPy with its modules `optimize` and `sparse`. Raises InputError if it is not installed."""
    try:
        import scipy.optimize
        import scipy.sparse.csgraph
    except ImportError:
        raise InputError(f"{argument}: needs SciPy, not installed here: pip install 'gpupif[release]'.") from None
    module: ModuleType = scipy
    return module


@dataclass(frozen=True)
class Additivity:
    """The equations of a table whose last place along each axis is the total: the others sum to it.

    shape: of the table, totals included. totals: False for a table without totals, and so without equations.
    """

    shape: Sequence[int]
    totals: bool = True

    @property
    def dimensions(self) -> int:
        """The number of columns that make the table."""
        return len(self.shape)

    @cached_property
    def matrix(self) -> Any:
        """The equations, sparse (equations, cells): each row times the figures is 0."""
        sparse = need_scipy("tables").sparse
        places = np.arange(math.prod(self.shape)).reshape(self.shape)
        blocks = []
        for axis, size in enumerate(self.shape if self.totals else ()):
            cells = np.moveaxis(places, axis, -1).reshape(-1, size)
            signs = np.tile(np.append(np.ones(size - 1), -1.0), len(cells))
            rows = np.repeat(np.arange(len(cells)), size)
            blocks.append(sparse.csr_array((signs, (rows, cells.ravel())), shape=(len(cells), places.size)))
        return sparse.vstack(blocks).tocsr() if blocks else sparse.csr_array((0, places.size))

    def with_empty_column(self) -> Any:
        """Return the equations with one more variable, which is in none of them."""
        sparse = need_scipy("tables").sparse
        return sparse.hstack([self.matrix, sparse.csr_array((self.matrix.shape[0], 1))]).tocsr()


def bound_cells(
    totals: Additivity,
    figures: Floats,
    hidden: Mask,
    asked: Mask,
    least: float = 0.0,
    slack: float = 0.0,
    advance: Callable[[], None] = lambda: None,
) -> tuple[Floats, Floats]:
    """Return the lowest and the highest figure that each suppressed cell may have for a reader of the others.

    figures: flat, all cells; those of `hidden` cells are not read. asked: the hidden cells to bound. least: what every
    hidden cell is known to have at least. slack: how far each published figure may be from the true one. advance:
    called for each cell that was bounded.

    Returns lower and upper bounds of the asked cells in order; infinite if no total bounds a cell. Raises InputError if
    the published figures contradict each other. Source: Fischetti and Salazar, Models and algorithms for optimizing
    cell suppression in tabular data, Journal of the American Statistical Association 95 (2000), 916-928 (attacker's
    subproblems).
    """
    scipy = need_scipy("audit_table")
    scale = max(1.0, float(np.abs(figures[~hidden]).max(initial=0.0)) / LARGE)
    fixed = ~hidden & (slack == 0)
    known = np.where(hidden, 0.0, figures) / scale
    low = np.where(hidden, least / scale, np.maximum(known - slack / scale, 0.0))
    high = np.where(hidden, np.inf, known + slack / scale)
    wanted = -(totals.matrix @ np.where(fixed, known, 0.0))
    free = np.flatnonzero(~fixed)
    equations = totals.matrix[:, free]
    used = np.diff(equations.indptr) > 0
    if (np.abs(wanted[~used]) > 100 * TOLERANCE).any():
        raise _contradiction()
    equations, wanted = equations[used], wanted[used]
    # Cells that no equation joins, even by way of others, have programs of their own.
    joined = (abs(equations.T) @ abs(equations)).tocsr()
    _, group = scipy.sparse.csgraph.connected_components(joined, directed=False)
    lower, upper = np.full(len(figures), np.nan), np.full(len(figures), np.nan)
    for number in np.unique(group[asked[free]]).tolist():
        inside = np.flatnonzero(group == number)
        cells = free[inside]
        part = equations[:, inside]
        rows = np.diff(part.indptr) > 0
        bounds = bound_jointly(part[rows], wanted[rows], low[cells], high[cells], asked[cells], advance)
        lower[cells], upper[cells] = bounds[0] * scale, bounds[1] * scale
    return lower[asked], upper[asked]


def bound_jointly(
    equations: Any, wanted: Floats, low: Floats, high: Floats, asked: Mask, advance: Callable[[], None] = lambda: None
) -> tuple[Floats, Floats]:
    """Return the lowest and the highest value that each asked cell may have, given sparse equations and bounds of all.

    A bound needs no program of its own if a solution of another program attains what a single equation allows. So the
    first programs are each about many cells that share no equation. Raises InputError if no values fit.
    """
    scipy = need_scipy("audit")
    highest = np.minimum(high, _highest_alone(equations, wanted, low, high))
    seen_low, seen_high = np.full(len(low), np.inf), np.full(len(low), -np.inf)
    bounds = np.column_stack([low, high])

    def solve(cells: Any, sign: float) -> Any:
        """Return the result of the program that moves cells up (sign -1) or down (1), and see what it attains."""
        goal = np.zeros(len(low))
        goal[cells] = sign
        result = scipy.optimize.linprog(goal, A_eq=equations, b_eq=wanted, bounds=bounds, method="highs")
        if result.x is not None:
            np.minimum(seen_low, result.x, out=seen_low)
            np.maximum(seen_high, result.x, out=seen_high)
        elif result.status != UNBOUNDED:
            raise _contradiction()
        return result

    lower, upper = np.full(len(low), np.nan), np.full(len(low), np.nan)
    ways = ((-1.0, highest, seen_high, upper), (1.0, low, seen_low, lower))

    def is_open(cells: Any, limits: Floats, seen: Floats) -> Any:
        return (np.abs(seen[cells] - limits[cells]) > TOLERANCE) & bool(equations.shape[0])

    for sign, limits, seen, _ in ways:
        waiting = np.flatnonzero(asked)
        while len(waiting := waiting[is_open(waiting, limits, seen)]) > 1:
            apart = _apart(equations, waiting)
            solve(apart, sign)
            waiting = np.setdiff1d(waiting, apart)
    for place in np.flatnonzero(asked).tolist():
        for sign, limits, seen, found in ways:
            if not is_open(place, limits, seen):
                found[place] = limits[place]
                continue
            result = solve(place, sign)
            found[place] = -sign * math.inf if result.x is None else sign * result.fun
        advance()
    return lower, upper


def _apart(equations: Any, cells: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the first of some cells and all later ones that share no equation with those before."""
    columns = equations.tocsc()
    taken: set[int] = set()
    apart = []
    for cell in cells.tolist():
        own = columns.indices[columns.indptr[cell] : columns.indptr[cell + 1]].tolist()
        if taken.isdisjoint(own):
            taken.update(own)
            apart.append(cell)
    return np.array(apart)


def _highest_alone(equations: Any, wanted: Floats, low: Floats, high: Floats) -> Floats:
    """Return the highest value of each cell that its equations allow, each equation by itself."""
    highest = np.full(len(low), np.inf)
    if not equations.shape[0]:
        return highest
    entries = equations.tocoo()
    rows, cells, signs = entries.coords[0], entries.coords[1], entries.data
    # What each cell adds to its equation at least: a total, whose sign is -1, at its highest.
    added = np.where(signs > 0, low[cells], -high[cells])
    endless = np.bincount(rows[np.isinf(added)], minlength=len(wanted))
    sums = np.bincount(rows, np.where(np.isinf(added), 0.0, added), len(wanted))
    least_others = sums[rows] - np.where(np.isinf(added), 0.0, added)
    usable = (signs > 0) & (endless[rows] == 0)
    np.minimum.at(highest, cells[usable], (wanted[rows] - least_others)[usable])
    return highest


def _contradiction() -> InputError:
    return InputError(
        "table: expected figures that sum to their totals, got others. If they are rounded or perturbed, say by slack= "
        "how far each may be from the true figure."
    )
