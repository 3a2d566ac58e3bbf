"""Where combinations of sets of columns are counted: on the cores of the host or on a GPU, with the same numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from ..rows.threads import Workers
from ..utils.information import Sizes
from .base import Engine
from .cpu.count_tables import DENSE, Combinations

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Counter(Protocol):
    """Counts the combinations of sets of columns, known by their places (see `SubsetCounter`)."""

    def add(self, codes: Sequence[Any], times: npt.NDArray[Any] | None = None) -> None:
        """Count further rows. times: what each counts, 0 or more (None: 1); combinations that count 0 do not occur."""

    def nbytes(self) -> int:
        """What of all rows so far the host keeps."""

    def combinations(self, place: int, ordered: bool = True) -> Combinations:
        """The combinations that occur, in the order of their codes, or in any order, which may take less time."""

    def counts(self, place: int) -> npt.NDArray[Any]:
        """Rows with each combination that occurs, in no particular order."""

    def sizes(self, place: int) -> Sizes:
        """How many combinations there are of each count."""


class Counting(Protocol):
    """Makes counters."""

    def counter(
        self, subsets: Sequence[Sequence[int]], cardinalities: Sequence[int], rows: int, dense: int = DENSE
    ) -> Counter:
        """A counter of these sets; arguments as of `SubsetCounter`."""

    def counters(
        self,
        codes: Sequence[Any],
        cardinalities: Sequence[int],
        sets: Sequence[Sequence[int]],
        times: npt.NDArray[Any] | None = None,
        differ: bool = False,
    ) -> Iterator[tuple[Counter, int]]:
        """For each of these sets, of any size, in turn a counter of all rows and its place there.

        times: what each row counts, 0 or more (None: 1). differ: whether no two rows are known to be equal.
        """

    def singles(
        self, codes: Sequence[Any], cardinalities: Sequence[int], often: npt.NDArray[np.uint8]
    ) -> Singles | None:
        """What finds unique rows among these, which differ; often: 1, or 2 for those that are several in the table.

        None: nothing that is faster than the host.
        """


class Singles(Protocol):
    """Finds rows that differ from all others on some columns."""

    def find(self, columns: Sequence[int], known: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32] | None:
        """Those that are unique on the columns and of which `known` has no bit, ascending; None: there is no room."""


class CountingEngine(Engine, Protocol):
    """An engine that counts too."""

    def counting(self, workers: Workers) -> AbstractContextManager[Counting]:
        """Makes counters while it is open; workers: the threads of what the host does. Raises DeviceError."""
