"""Few rows, and many sets of columns of more possible combinations than are worth a counter each.

For each set rows get the number that their combination has among all that are possible, and equal numbers are grouped,
all at once, in the second-level cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import subsets as kernels
from gpupif.kernels.groups import Room
from gpupif.kernels.spread import look_up

from ...rows.keys import WORD_BITS, code_type
from ...rows.partition import index_type
from ...rows.threads import Spares
from .count_tables import Combinations, common_type

# Rows at most: more are partitioned first, for they leave the cache.
MOST_ROWS = 1 << 17
# Numbers are keys of one word, which need no hashes.
NO_HASHES: npt.NDArray[np.uint64] = np.empty(0, np.uint64)


class ListedRows:
    """Rows whose combinations are counted set by set, by any number of threads.

    codes, times, cardinalities: as of `SubsetCounter`; total: what the rows count. subsets: those that will be counted.
    """

    def __init__(
        self,
        codes: Sequence[npt.NDArray[Any]],
        times: npt.NDArray[Any] | None,
        total: int,
        subsets: Sequence[Sequence[int]],
        cardinalities: Sequence[int],
    ) -> None:
        self._cardinalities = cardinalities
        self._rows = len(codes[0])
        used = sorted({column for subset in subsets for column in subset})
        self._codes = np.empty((len(cardinalities), self._rows), common_type([cardinalities[one] for one in used]))
        for column in used:
            self._codes[column] = codes[column]
        counter = index_type(total + 1)
        self._times = np.empty(0, counter) if times is None else times.astype(counter)
        self._rooms = Spares(lambda: (Room.of(self._rows), np.empty(self._rows, counter)))

    @staticmethod
    def serves(rows: int, cardinalities: Sequence[int]) -> bool:
        """Whether so few rows are to be listed for a set of such columns."""
        return rows <= MOST_ROWS and math.prod(cardinalities) <= 1 << WORD_BITS

    def count(self, subset: Sequence[int]) -> Combinations:
        """The combinations of a set, in order of first appearance."""
        radices = [self._cardinalities[column] for column in subset]
        numbers = np.empty((self._rows, 1), np.uint64)
        kernels.combine(self._codes, 0, np.array(subset, np.int64), np.array(radices, np.int64), numbers[:, 0])
        first, counts = np.empty(self._rows + 1, np.uint32), np.empty(self._rows + 1, np.int64)
        room = self._rooms.take()
        found = kernels.count_in_groups(numbers, self._times, NO_HASHES, *room, first, counts)
        self._rooms.give_back(room)
        codes = [np.empty(found, code_type(radix)) for radix in radices]
        for column, own in zip(subset, codes, strict=True):
            look_up(self._codes[column], first[:found], own)
        return Combinations(codes, counts[:found].copy())
