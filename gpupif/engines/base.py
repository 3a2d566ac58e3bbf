"""The interface between scoring and the engines: codes in, scores out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..gpu.base import FrameLibrary
from ..measures import Measure
from ..rows.keys import KeyLayout
from ..utils.arrays import on_host
from ..utils.information import LogSum, Sizes
from .axis import Axis

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Progress(Protocol):
    """Where an engine reports how far it is, in cells."""

    def advance(self, cells: int) -> None:
        """Another `cells` cells are scored."""


class _Silent:
    def advance(self, cells: int) -> None:
        """Nothing to say."""


# For what is scored on the way: cells of distinct rows, or of a set of columns, are not those of the table.
SILENT: Progress = _Silent()


@dataclass(frozen=True)
class Job:
    """What is to be scored.

    codes: per column one code per row, 0 to its cardinality - 1, all of them in use unless rows have weight 0; of the
    host or of a device. counts: per column the number of rows with each code. priors: per column the prior by code,
    positive, but 0 for values of the table's own distribution that only rows of weight 0 have; log2_priors: its
    logarithm, of that distribution log2 count - log2 rows, in units of 2^-unit_bits bits, by column. accuracies:
    per column, in [0, 1]. scored columns: the columns to score; known: the columns the attacker knows (a scored column
    among them
    is not known when it is itself scored). axes: per column where its values lie, None for one that is not asked
    for, or altogether. whole: per column how many values the table has, and their prior mass, where codes are of
    some of them only. times: how often each row occurs in the table (None: once), so that a row may stand for many;
    a row that occurs 0 times is scored, and in no cohort. unit: with sampling weights, `times` and `counts` are in
    units of so many people. scores_on: where the scores are to lie: "host", "device" (the CPU engine has them on
    the host all the same), or "either" for where and as they are made, then maybe as `SharedScores`. extremes_only:
    only the lowest and highest scores are asked for, no scores of rows. wildcards: columns whose missing values,
    the last code, match any value; that code has no prior. least: sizes that are less are this, each before a mean
    over attackers is taken: 1 where a row whose cohort is empty counts itself (None: they are as they are).
    class_without_scored_column: a row's class is its cohort, even where others are scored against an attacker who knows
    the scored column. distinct: no two rows are equal, so that equal ones need not be looked for. row_counts: with
    sampling weights, how many rows of the table each row stands for (None: one).
    """

    codes: Sequence[npt.NDArray[Any]]
    counts: Sequence[npt.NDArray[np.int64]]
    priors: Sequence[npt.NDArray[np.float64]]
    log2_priors: Sequence[npt.NDArray[np.int64]]
    unit_bits: Sequence[int]
    accuracies: Sequence[float]
    scored_columns: list[int]
    known: list[int]
    measures: Sequence[Measure]
    dtype: str
    axes: Sequence[Axis | None] | None = None
    whole: Sequence[tuple[int, float]] | None = None
    times: npt.NDArray[np.int64] | None = None
    scores_on: str = "host"
    extremes_only: bool = False
    unit: float | None = None
    wildcards: Sequence[int] = ()
    class_without_scored_column: bool = False
    least: float | None = None
    distinct: bool = False
    row_counts: npt.NDArray[np.int64] | None = None

    @property
    def rows(self) -> int:
        """Rows that are given."""
        return len(self.codes[0])

    @property
    def total(self) -> int:
        """Rows of the table that they stand for."""
        return self.rows if self.times is None else int(self.times.sum())

    @property
    def cardinalities(self) -> list[int]:
        """How many values each column has."""
        return [len(counts) for counts in self.counts]

    @property
    def layout(self) -> KeyLayout:
        """Where row keys of all columns hold them."""
        return KeyLayout.of(self.cardinalities)

    def on_host(self) -> Job:
        """The same job with all codes on the host."""
        return replace(self, codes=[on_host(codes) for codes in self.codes])

    def with_ordered_codes(self, bring: Callable[[Any], Any] = lambda array: array) -> Job:
        """The same job with codes renumbered in the order of the axes; `bring` takes an array to where codes are."""
        if self.axes is None:
            return self
        moved = {column: axis for column, axis in enumerate(self.axes) if axis is not None and axis.moves}
        if not moved:
            return self
        import numpy as np

        codes = list(self.codes)
        by_code: list[list[Any]] = [list(self.counts), list(self.priors), list(self.log2_priors)]
        for column, axis in moved.items():
            # Missing values that are wildcards have no place on the axis, and stay last.
            rest = np.arange(len(axis.rank), len(self.counts[column]))
            narrow = np.append(axis.rank, rest).astype(codes[column].dtype)
            codes[column] = (bring(narrow) if hasattr(codes[column], "get") else narrow)[codes[column]]
            for arrays in by_code:
                values = arrays[column]
                arrays[column] = np.append(values[axis.order], values[len(axis.rank) :])
        counts, priors, log2_priors = by_code
        return replace(self, codes=codes, counts=counts, priors=priors, log2_priors=log2_priors)


def select_columns(job: Job, columns: Sequence[int]) -> Job:
    """The same job on a table of some of its columns only: the scored columns and those known among them."""
    place = {column: number for number, column in enumerate(columns)}
    return replace(
        job,
        codes=[job.codes[column] for column in columns],
        counts=[job.counts[column] for column in columns],
        priors=[job.priors[column] for column in columns],
        log2_priors=[job.log2_priors[column] for column in columns],
        unit_bits=[job.unit_bits[column] for column in columns],
        accuracies=[job.accuracies[column] for column in columns],
        axes=None if job.axes is None else [job.axes[column] for column in columns],
        whole=None if job.whole is None else [job.whole[column] for column in columns],
        scored_columns=[place[column] for column in job.scored_columns if column in place],
        known=[place[column] for column in job.known if column in place],
        wildcards=[place[column] for column in job.wildcards if column in place],
    )


@dataclass(frozen=True)
class EngineResult:
    """What an engine gives back.

    values: measure name to an array (scored columns, rows), each scored column contiguous, of the host or of a device,
    or
    `SharedScores`. weights: per scored column H(X|known) / H(X), 0 where H(X) is 0. distinct_rows: different rows over
    all columns of the job. cohorts: per scored column the sizes of its cohorts; distinct: those of groups of rows that
    agree on the scored column too; where rows have weights only sums over them. From these of all parts of a table its
    weights
    can be found. extremes: measure name to the lowest and highest score of each scored column (scored columns, 2),
    where only
    these were asked for. through_host: that, and why, a table was not scored as a whole on a GPU; empty where it
    was, and on the CPU.
    """

    values: dict[str, npt.NDArray[Any]]
    weights: list[float]
    distinct_rows: int
    cohorts: list[Sizes | LogSum]
    distinct: list[Sizes | LogSum]
    extremes: dict[str, npt.NDArray[np.float64]]
    through_host: str = ""

    def by_fold(self) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """Scores by measure, under "": as `AnyKnownResult` has them by fold."""
        return {"": self.values}

    def weights_by_fold(self) -> dict[str, list[float]]:
        """Weights of the scored columns, likewise."""
        return {"": self.weights}


@dataclass(frozen=True)
class KnownSubset:
    """Columns, ascending, and those of them that are scored against an attacker who knows the others."""

    columns: tuple[int, ...]
    scored_columns: tuple[int, ...]


@dataclass(frozen=True)
class AnyKnownResult:
    """worst, mean: measure name to an array (scored columns, rows), of the host or of a device. weights: by scored
    column that of
    each of its subsets, in the order of the sets. distinct_rows: over all columns. through_host: see `EngineResult`.
    """

    worst: dict[str, npt.NDArray[Any]]
    mean: dict[str, npt.NDArray[Any]]
    weights: list[npt.NDArray[np.float64]]
    distinct_rows: int
    through_host: str = ""

    def by_fold(self) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """Scores by measure, of each fold."""
        return {"worst": self.worst, "mean": self.mean}

    def weights_by_fold(self) -> dict[str, list[float]]:
        """Of each fold the weights of the scored columns: the lowest, and the mean."""
        return {
            "worst": [float(weights.min()) for weights in self.weights],
            "mean": [float(weights.mean()) for weights in self.weights],
        }


class AnyKnownShares(NamedTuple):
    """scored columns: whose scores are folded at once. threads: that score sets at once. slots: of each, see
    `AnyKnownRun`; batch: bytes of sets' numbers and scores that are kept at once, by all of them.
    """

    scored_columns: int
    threads: int
    slots: int
    batch: int


class Engine(Protocol):
    """An engine: the same scores whatever the device.

    shares_distinct_rows: whether it pays to find a table's distinct rows once, on the host, for several attackers.
    """

    device: str
    shares_distinct_rows: bool

    @property
    def frames(self) -> FrameLibrary | None:
        """What tables are read and encoded with; None for the host's own libraries."""

    def score(self, job: Job, progress: Progress) -> EngineResult:
        """Score all scored columns of the job."""

    def score_sets(
        self, job: Job, sets: Sequence[KnownSubset], progress: Progress, shares: AnyKnownShares | None = None
    ) -> AnyKnownResult:
        """Score them against any attacker; see `known_subsets.score_sets`."""
