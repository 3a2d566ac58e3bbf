"""The interface between scoring and the engines: codes in, scores out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..information import LogSum, Sizes
    from ..measures import Measure
    from .cuda_frames import FrameLibrary


class Progress(Protocol):
    """Where an engine reports how far it is, in cells."""

    def advance(self, cells: int) -> None:
        """Another `cells` cells are scored."""


@dataclass(frozen=True)
class Job:
    """What is to be scored.

    codes: per column one code per row, 0 to its cardinality - 1, all of them in use; of the host or of a device.
    counts: per column the number of rows with each code. priors: per column the prior by code, positive; log2_priors:
    its logarithm, of the table's own distribution log2 count - log2 rows. accuracies: per column, in [0, 1].
    targets: the columns to score; known: the columns the attacker knows (a target among them is not known when it
    is itself scored).
    times: how often each row occurs in the table (None: once), so that a row may stand for many. Engines take no 0: see
    `nobody`. unit: with sampling weights, `times` and `counts` are in units of so many people.
    scores_on: where the scores are to lie: "host", "device", or "either" for where they are made. The CPU engine always
    has them on the host.
    """

    codes: Sequence[npt.NDArray[Any]]
    counts: Sequence[npt.NDArray[np.int64]]
    priors: Sequence[npt.NDArray[np.float64]]
    log2_priors: Sequence[npt.NDArray[np.float64]]
    accuracies: Sequence[float]
    targets: list[int]
    known: list[int]
    measures: Sequence[Measure]
    dtype: str
    times: npt.NDArray[np.int64] | None = None
    scores_on: str = "host"
    unit: float | None = None

    @property
    def rows(self) -> int:
        """Rows that are given."""
        return len(self.codes[0])

    @property
    def total(self) -> int:
        """Rows of the table that they stand for."""
        return self.rows if self.times is None else int(self.times.sum())

    def on_host(self) -> Job:
        """The same job with all codes on the host."""
        return replace(self, codes=[on_host(codes) for codes in self.codes])


@dataclass(frozen=True)
class EngineResult:
    """What an engine gives back.

    values: measure name to an array (targets, rows), each target contiguous, of the host or of a device. weights: per
    target H(X|known) / H(X), 0 where H(X) is 0. distinct_rows: different rows over all columns of the job. cohorts: per
    target the sizes of its cohorts; distinct: those of groups of rows that agree on the target too; where rows have
    weights only sums over them. From these of all parts of a table its weights can be found.
    """

    values: dict[str, npt.NDArray[Any]]
    weights: list[float]
    distinct_rows: int
    cohorts: list[Sizes | LogSum]
    distinct: list[Sizes | LogSum]


class Engine(Protocol):
    """An engine: the same scores whatever the device."""

    device: str

    @property
    def frames(self) -> FrameLibrary | None:
        """What tables are read and encoded with; None for the host's own libraries."""

    def score(self, job: Job, progress: Progress) -> EngineResult:
        """Score all targets of the job."""


def on_host(array: Any) -> Any:
    """An array of a device as one of the host; others as they are."""
    return array.get() if hasattr(array, "get") else array
