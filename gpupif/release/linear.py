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
    return scipy


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
        program = {"A_eq": part[rows], "b_eq": wanted[rows], "bounds": np.column_stack([low[cells], high[cells]])}
        for place in np.flatnonzero(asked[cells]).tolist():
            goal = np.zeros(len(cells))
            cell = cells[place]
            if not rows.any():
                # The cell is in no equation: what is known of it alone holds.
                lower[cell], upper[cell] = low[cell] * scale, high[cell] * scale
            for sign, bounds in ((1.0, lower), (-1.0, upper)) if rows.any() else ():
                goal[place] = sign
                bounds[cell] = sign * _optimum(scipy, goal, program) * scale
            advance()
    return lower[asked], upper[asked]


def _optimum(scipy: Any, goal: Floats, program: dict[str, Any]) -> float:
    """Return the least value of a goal; negative infinity if there is none. Raises InputError for a contradiction."""
    result = scipy.optimize.linprog(goal, method="highs", **program)
    if result.status == UNBOUNDED:
        return -math.inf
    if result.x is None:
        raise _contradiction()
    return float(result.fun)


def _contradiction() -> InputError:
    return InputError(
        "table: expected figures that sum to their totals, got others. If they are rounded or perturbed, say by slack= "
        "how far each may be from the true figure."
    )
