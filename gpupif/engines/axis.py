"""Where the values of a column lie, as the earth mover's distance needs them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gpupif.kernels import walks

NOTHING: npt.NDArray[np.float64] = np.empty(0)
# Half of the way to another node's values on either side, so that values with a parent in common are one level apart.
EDGE = 0.5


@dataclass(frozen=True)
class Axis:
    """Where the values of a column lie.

    kind: a constant of `kernels/walks.py`. rank: by code, the place of its value among those that occur. places: by
    rank, its place among all that have a prior; prior: by place. nodes: by level and rank, in a hierarchy; masses: of
    nodes. longest: the farthest that two values are apart: 1, steps, or levels.
    """

    kind: int
    rank: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    prior: npt.NDArray[np.float64]
    nodes: npt.NDArray[np.int64]
    masses: npt.NDArray[np.float64]
    longest: int

    @property
    def moves(self) -> bool:
        """Whether codes are not in the order of the axis."""
        return bool((self.rank[1:] < self.rank[:-1]).any())

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """The codes in the order of the axis."""
        return np.argsort(self.rank, kind="stable")

    def only(self, codes: npt.NDArray[np.integer]) -> Axis:
        """The axis of some of the values, by ascending code."""
        ranks = self.rank[codes]
        kept = np.sort(ranks)
        return replace(
            self,
            rank=np.searchsorted(kept, ranks),
            places=self.places[kept],
            nodes=self.nodes[:, kept],
            masses=self.masses[kept] if self.kind == walks.NOMINAL else self.masses,
        )
