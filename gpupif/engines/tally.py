"""How many cohorts there are of each size: what the weights of columns are computed from, exactly in any order."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpupif.kernels import cohorts

if TYPE_CHECKING:
    import numpy.typing as npt

SMALL_COHORTS = 4096


class Tally(NamedTuple):
    """Where kernels count, per target: small cohorts by their size, the others, being few, in a list."""

    small: npt.NDArray[np.int64]
    large: npt.NDArray[np.int64]
    listed: npt.NDArray[np.int64]

    @classmethod
    def of(cls, targets: int, rows: int) -> Tally:
        """For so many targets and a table of so many rows."""
        large = np.empty((targets, rows // SMALL_COHORTS + 1), np.int64)
        return cls(np.zeros((targets, SMALL_COHORTS), np.int64), large, np.zeros(targets, np.int64))

    def read(self) -> list[Counter[int]]:
        """The number of cohorts by size, of each target."""
        counters = []
        for small, large, listed in zip(*self, strict=True):
            sizes = np.flatnonzero(small)
            counter = Counter(dict(zip(sizes.tolist(), small[sizes].tolist(), strict=True)))
            counter.update(large[:listed].tolist())
            counters.append(counter)
        return counters


def count_sizes(counts: npt.NDArray[Any], rows: int) -> Counter[int]:
    """How often each count occurs among these, of a table of so many rows."""
    tally = Tally.of(1, rows)
    tally.listed[0] = cohorts.count_sizes(counts, len(counts), tally.small[0], tally.large[0], 0)
    return tally.read()[0]
