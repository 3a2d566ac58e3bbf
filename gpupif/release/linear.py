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
from .accounting import needs

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
# The tolerance of HiGHS, and the largest figure of its programs: tables with larger ones are scaled.
TOLERANCE, LARGE = 1e-7, 1e6
# The dual and the primal simplex method, as HiGHS numbers them.
DUAL, PRIMAL = 1, 4


def need_solvers(argument: str) -> ModuleType:
    """Return SciPy with its modules `optimize` and `sparse`. Raises InputError if it, or highspy, is not installed."""
    for package in ("scipy", "highspy"):
        needs(package, argument)
    import scipy.optimize
    import scipy.sparse.csgraph

    module: ModuleType = scipy
    return module


class ContradictionError(InputError):
    """No figures fit all equations and bounds."""

    def __init__(self) -> None:
        super().__init__(
            "table: expected figures that sum to their totals, got others. If they are rounded or perturbed, say by "
            "slack= how far each may be from the true figure."
        )


class Program:
    """A linear program, whose goal and bounds change from one search to the next.

    equations: sparse (equations, variables). wanted: their right sides. low, high: the bounds of each variable, maybe
    infinite.
    """

    def __init__(self, equations: Any, wanted: Floats, low: Floats, high: Floats) -> None:
        import highspy

        columns = equations.tocsc()
        model = highspy.HighsLp()
        model.num_row_, model.num_col_ = columns.shape
        model.row_lower_ = model.row_upper_ = wanted
        model.col_lower_, model.col_upper_, model.col_cost_ = low, high, np.zeros(len(low))
        model.a_matrix_.start_, model.a_matrix_.index_ = columns.indptr, columns.indices
        model.a_matrix_.value_ = columns.data
        self._states = highspy.HighsModelStatus
        self._solver = highspy.Highs()
        for option, value in (("output_flag", False), ("parallel", "off"), ("presolve", "off")):
            self._solver.setOptionValue(option, value)
        self._solver.passModel(model)
        self._variables = np.arange(len(low), dtype=np.int32)

    def find(self) -> None:
        """Find values that fit, at which `least` starts. Raises ContradictionError if there are none."""
        self._solved(DUAL, np.zeros(len(self._variables)))

    def least(self, goal: Floats) -> Floats | None:
        """Return values that fit, of which the sum weighted by the goal is least; None if there is no least.

        The search starts at the values found last.
        """
        return self._solved(PRIMAL, goal)

    def least_within(self, low: Floats, high: Floats, goal: Floats) -> Floats | None:
        """Return the same as `least`, within other bounds. The search starts anew; no part of the goal is below 0."""
        self._solver.clearSolver()
        self._solver.changeColsBounds(len(self._variables), self._variables, low, high)
        return self._solved(DUAL, goal)

    def _solved(self, method: int, goal: Floats) -> Floats | None:
        self._solver.changeColsCost(len(self._variables), self._variables, goal)
        for own in (method, DUAL if method == PRIMAL else PRIMAL):
            self._solver.setOptionValue("simplex_strategy", own)
            self._solver.run()
            state = self._solver.getModelStatus()
            if state == self._states.kOptimal:
                return np.array(self._solver.getSolution().col_value)
            if state == self._states.kUnbounded:
                return None
            # Rounding errors can end a search without a result, or with a wrong one: the other method starts anew.
            self._solver.clearSolver()
        if state == self._states.kInfeasible:
            raise ContradictionError
        raise InputError(
            f"table: a linear program about its cells ended without a result ({state.name[1:]}), as figures differ too "
            "much in size. Leave out the smallest, or round in place of suppressing."
        )


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
        sparse = need_solvers("tables").sparse
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
        sparse = need_solvers("tables").sparse
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

    figures: flat, all cells; those of `hidden` cells are not read. asked: the hidden cells to bound. least: what each
    of them is known to have at least. slack: how far each published figure may be from the true one. advance:
    called for each cell that was bounded.

    Returns lower and upper bounds of the asked cells in order; infinite if no total bounds a cell. Raises InputError if
    the published figures contradict each other. Source: Fischetti and Salazar, Models and algorithms for optimizing
    cell suppression in tabular data, Journal of the American Statistical Association 95 (2000), 916-928 (attacker's
    subproblems).
    """
    scipy = need_solvers("audit_table")
    largest = float(np.abs(figures[~hidden]).max(initial=0.0))
    # A power of 2, so that nothing is rounded.
    scale = 2.0 ** math.ceil(math.log2(largest / LARGE)) if largest > LARGE or 0 < largest < 1 else 1.0
    fixed = ~hidden & (slack == 0)
    known = np.where(hidden, 0.0, figures) / scale
    low = np.where(hidden, np.where(asked, least / scale, 0.0), np.maximum(known - slack / scale, 0.0))
    high = np.where(hidden, np.inf, known + slack / scale)
    wanted = -(totals.matrix @ np.where(fixed, known, 0.0))
    free = np.flatnonzero(~fixed)
    equations = totals.matrix[:, free]
    used = np.diff(equations.indptr) > 0
    if (np.abs(wanted[~used]) > 100 * TOLERANCE).any():
        raise ContradictionError
    equations, wanted = equations[used], wanted[used]
    # Cells that no equation joins, even by way of others, have programs of their own.
    joined = (abs(equations.T) @ abs(equations)).tocsr()
    _, group = scipy.sparse.csgraph.connected_components(joined, directed=False)
    lower, upper = np.full(len(figures), np.nan), np.full(len(figures), np.nan)
    for number in np.unique(group).tolist():
        inside = np.flatnonzero(group == number)
        cells = free[inside]
        part = equations[:, inside]
        rows = np.diff(part.indptr) > 0
        bounds = bound_jointly(part[rows], wanted[rows], low[cells], high[cells], asked[cells], advance)
        lower[cells], upper[cells] = bounds[0] * scale, bounds[1] * scale
    equal = upper - lower <= TOLERANCE * scale
    upper[equal] = lower[equal]
    return lower[asked], upper[asked]


def bound_jointly(
    equations: Any, wanted: Floats, low: Floats, high: Floats, asked: Mask, advance: Callable[[], None] = lambda: None
) -> tuple[Floats, Floats]:
    """Return the lowest and the highest value that each asked cell may have, given sparse equations and bounds of all.

    A bound needs no program of its own if a solution of another program attains what a single equation allows. So the
    first programs are each about many cells that share no equation. Raises ContradictionError if no values fit.
    """
    program = Program(equations, wanted, low, high)
    program.find()
    highest = np.minimum(high, _highest_alone(equations, wanted, low, high))
    seen_low, seen_high = np.full(len(low), np.inf), np.full(len(low), -np.inf)

    def solve(cells: Any, sign: float) -> Floats | None:
        """Return the values that move cells farthest up (sign -1) or down (1), if there are; see what they attain."""
        goal = np.zeros(len(low))
        goal[cells] = sign
        values = program.least(goal)
        if values is not None:
            np.minimum(seen_low, values, out=seen_low)
            np.maximum(seen_high, values, out=seen_high)
        return values

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
            values = solve(place, sign)
            found[place] = -sign * math.inf if values is None else values[place]
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
