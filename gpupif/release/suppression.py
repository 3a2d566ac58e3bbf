"""Secondary suppression: further cells are suppressed until no suppressed cell can be computed or bounded closely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .linear import TOLERANCE, Additivity, Floats, Mask, Program, bound_cells, need_solvers

# The cost of a cell that is suppressed already, in units of the largest figure: less than that of most other cells.
NEXT_TO_NOTHING = 1e-9
# Bounds of whole numbers are rounded inwards unless they are so close to one.
WHOLE = 1e-3
# Sums have to be uncertain by at least this share.
LEAST_SHARE = 1e-4


@dataclass(frozen=True)
class Protection:
    """The distance that a reader has to be kept from each cell. Arrays are flat, with all cells.

    width: the least width of the interval between the bounds of a suppressed cell; 0 for any width above 0.
    margin: how far the bounds have to be from the true figure, on both sides; 0 for none. The lower bound may be 0.
    least: what every suppressed cell is known to have at least.
    whole: whether figures are whole numbers, so that bounds are rounded inwards.
    """

    width: float
    margin: Floats
    least: float = 0.0
    whole: bool = False

    def inward(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Return bounds, of whole numbers the nearest within."""
        return (np.ceil(lower - WHOLE), np.floor(upper + WHOLE)) if self.whole else (lower, upper)

    def fails(self, figures: Floats, lower: Floats, upper: Floats, cells: Any = slice(None)) -> Mask:
        """Return a mask of the cells that are bounded too closely.

        figures, lower, upper: of these cells. cells: a mask or the numbers of the
        cells. Default: all.
        """
        lower, upper = self.inward(lower, upper)
        close = TOLERANCE * 10 * np.maximum(1.0, figures)
        margin: Floats = self.margin[cells]
        below = lower > figures - np.minimum(margin, figures) + close
        failed: Mask = (upper - lower < self.width) | (upper < figures + margin - close)
        close_cells: Mask = failed | below | self.computes(lower, upper)
        return close_cells

    def computes(self, lower: Floats, upper: Floats) -> Mask:
        """Return a mask of the cells whose bounds, rounded inwards, are equal."""
        computed: Mask = upper - lower <= (0 if self.whole else TOLERANCE * 10 * np.maximum(1.0, lower))
        return computed


def suppress_more(
    totals: Additivity,
    figures: Floats,
    primary: Mask,
    there: Mask,
    protection: Protection,
    advance: Callable[[], None] = lambda: None,
) -> Mask:
    """Return a mask of all cells to suppress: the primary ones, and those that protect them.

    figures, primary: flat, all cells. there: a mask of the cells that have rows; the others are never suppressed, as
    every reader knows that they are 0. advance: called for each cell that is looked at.

    For each suppressed cell that is not known to be safe, a linear program finds the cheapest change of the table that
    moves the cell as far as it has to be moved and keeps all totals. Cells that change are suppressed: the reader
    cannot tell the changed table from the true one. The cost of a cell is the square root of its figure: totals cost
    more. The changed tables prove the bounds, so that the audit passes.

    Raises InputError if SciPy or highspy is missing. Source: Kelly, Golden and Assad, Cell suppression: disclosure
    protection for sensitive tabular data, Networks 22 (1992), 397-417.
    """
    scipy = need_solvers("suppress_below")
    cells = np.flatnonzero(there)
    equations = totals.matrix[:, cells]
    equations = equations[np.diff(equations.indptr) > 0]
    still = np.zeros(2 * len(cells))
    moves = scipy.sparse.hstack([equations, -equations])
    program = Program(moves, np.zeros(moves.shape[0]), still, still)
    hidden = primary.copy()
    lower, upper = figures.copy(), figures.copy()
    lower[hidden], upper[hidden] = bound_cells(totals, figures, hidden, hidden, protection.least)
    # Each cell is moved once: then it is safe but for rounding errors, which the audit judges.
    moved = np.zeros_like(hidden)
    while (waiting := np.flatnonzero(hidden & ~moved & protection.fails(figures, lower, upper))).size:
        moved[waiting] = True
        for cell in waiting[np.argsort(-protection.margin[waiting], kind="stable")].tolist():
            advance()
            one, figure, margin = np.array([cell]), figures[cell], protection.margin[cell]
            far = max(protection.width, margin, max(figure, 1.0) * LEAST_SHARE * (not protection.whole))
            for move in (far, -min(margin, figure)):
                reached = upper[cell] >= figure + move if move > 0 else lower[cell] <= figure + move
                if reached or not protection.fails(figures[one], lower[one], upper[one], one).any():
                    continue
                change = _cheapest_change(program, figures, hidden, cells, protection.least, cell, move)
                hidden |= change != 0
                for changed in (figures + change, figures - change):
                    if (changed >= np.where(hidden, protection.least, 0) - TOLERANCE * max(1.0, far)).all():
                        lower, upper = np.minimum(lower, changed), np.maximum(upper, changed)
    return hidden


def _cheapest_change(
    program: Program, figures: Floats, hidden: Mask, cells: Any, least: float, cell: int, move: float
) -> Floats:
    """Return the cheapest change of all figures that moves a cell and keeps all totals.

    program: of rises and of falls of the cells that may change. cells: their numbers, ascending. least: what every
    suppressed cell has at least. move: of the cell, below 0 for a fall.
    """
    own, size, place = figures[cells], len(cells), int(np.searchsorted(cells, cell))
    # Changes are in units of the move, so that tolerances are small beside it.
    unit = abs(move)
    low, high = np.zeros(2 * size), np.concatenate([np.full(size, np.inf), np.maximum(own - least, 0.0) / unit])
    both = [place, size + place]
    low[both] = high[both] = (1, 0) if move > 0 else (0, 1)
    cost = np.where(hidden[cells], NEXT_TO_NOTHING, np.sqrt(own / max(1.0, own.max())) + NEXT_TO_NOTHING)
    # A rise of the cell and of all its totals keeps all totals, and so does the fall of all, so that there is a change.
    moves = program.least_within(low, high, np.tile(cost, 2))
    assert moves is not None
    moved = moves[:size] - moves[size:]
    change = np.zeros_like(figures)
    change[cells] = np.where(np.abs(moved) <= 10 * TOLERANCE, 0.0, moved * unit)
    return change
