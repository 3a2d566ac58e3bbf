"""The interface between scoring and the engines: codes in, scores out; and combinations counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from gpupif.kernels import walks

from ..gpu.cudf_frames import CudfFrames
from ..measures import Measure
from ..rows.keys import KeyLayout
from ..rows.threads import Workers
from ..utils.arrays import on_host
from ..utils.information import LogSum, Sizes
from .cpu.count_tables import DENSE, Combinations

NOTHING: npt.NDArray[np.float64] = np.empty(0)
# Half of the way to another node's values on either side, so that values with a parent in common are one level apart.
EDGE = 0.5


class Progress(Protocol):
    """Progress of scoring, in cells."""

    def advance(self, cells: int) -> None:
        """Report that another `cells` cells are scored."""


class _Silent:
    def advance(self, cells: int) -> None:
        """Report nothing."""


# For cells that are not those of the table: of distinct rows, or of one of several sets of columns.
SILENT: Progress = _Silent()


@dataclass(frozen=True)
class Axis:
    """The order or the hierarchy of a column's values, for the earth mover's distance.

    kind: a constant of `kernels/walks.py`.
    rank: by code, the place of its value among those that occur.
    places: by rank, its place among all values that have a prior.
    prior: by place.
    nodes: (levels, values), by rank the node of a hierarchy.
    masses: by node, of the prior.
    longest: the greatest distance of two values: 1, steps, or levels.
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
        """Return whether codes are not in the order of the axis."""
        return bool((self.rank[1:] < self.rank[:-1]).any())

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """Return the codes in the order of the axis."""
        return np.argsort(self.rank, kind="stable")

    def only(self, codes: npt.NDArray[np.integer]) -> Axis:
        """Return the axis of some of the values, by ascending code."""
        ranks = self.rank[codes]
        kept = np.sort(ranks)
        return replace(
            self,
            rank=np.searchsorted(kept, ranks),
            places=self.places[kept],
            nodes=self.nodes[:, kept],
            masses=self.masses[kept] if self.kind == walks.NOMINAL else self.masses,
        )


@dataclass(frozen=True)
class Job:
    """What an engine scores, and how.

    codes: by column, (rows,) whole numbers below the column's cardinality, on the host or a device. Every code occurs,
        unless rows have weight 0.
    counts: by column, (values,) int64. The rows with each code, or with weights the units of people.
    priors: by column, (values,) float64. The prior probability of each code: positive, but 0 for values of the table's
        own distribution that only rows of weight 0 have.
    log2_priors: by column, (values,) int64. The logarithms of the priors, in units of 2^-unit_bits bits: for the
        table's own distribution log2 count - log2 rows.
    unit_bits: by column. See log2_priors.
    accuracies: by column, from 0 to 1. How far the attacker's conclusion about the column is trusted.
    scored_columns: columns to score, by their places in codes.
    known: columns that the attacker knows, likewise. A scored column is not known while it is itself scored.
    measures: to compute for each cell.
    dtype: "float64" or "float32", of the scores.
    axes: by column the order or hierarchy of its values, None for columns without one; None if no measure needs any.
    whole: by column the number of values of the whole table, and their prior mass, if codes are of some of them only.
    times: (rows,) int64. How often each row occurs in the table, None for once each. A row that occurs 0 times is in no
        cohort, yet its cells are scored.
    scores_on: where the scores are to lie: "host", "device" (the CPU engine takes it as "host"), or "either", for
        wherever they are made, then perhaps as `SharedScores`.
    extremes_only: whether only the lowest and the highest score of each scored column are needed.
    unit: with sampling weights, how many people one unit of times and counts is; else None.
    wildcards: columns whose missing values, the last code, match every value; that code has no prior.
    class_without_scored_column: whether a row's class is its cohort, even if others are scored against an attacker who
        knows the scored column.
    least: what smaller sizes are raised to, before any mean over attackers: 1 if a row whose cohort is empty counts
        itself. None: sizes stay as they are.
    distinct: whether no two rows are known to be equal, so that equal ones need not be looked for.
    row_counts: with sampling weights, (rows,) int64. How many rows of the table each row stands for, None for one.
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
        """Return the number of rows that are given."""
        return len(self.codes[0])

    @property
    def total(self) -> int:
        """Return the number of rows, or units of people, of the table that they stand for."""
        return self.rows if self.times is None else int(self.times.sum())

    @property
    def cardinalities(self) -> list[int]:
        """Return how many values each column has."""
        return [len(counts) for counts in self.counts]

    @property
    def layout(self) -> KeyLayout:
        """Return the layout of row keys of all columns."""
        return KeyLayout.of(self.cardinalities)

    def on_host(self) -> Job:
        """Return the job with all codes on the host."""
        return replace(self, codes=[on_host(codes) for codes in self.codes])

    def with_ordered_codes(self, bring: Callable[[Any], Any] = lambda array: array) -> Job:
        """Return the job with codes renumbered in the order of the axes; not to be called twice.

        bring: takes an array to where codes are.
        """
        if self.axes is None:
            return self
        moved = {column: axis for column, axis in enumerate(self.axes) if axis is not None and axis.moves}
        if not moved:
            return self
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
    """Return the job on a table of some of its columns: the scored columns and the known ones among them."""
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
    """What an engine gives back for an attacker who knows one list of columns.

    values: by the name of a measure, (scored columns, rows), each scored column contiguous, on the host or a device; or
        `SharedScores`.
    weights: by scored column H(X|known) / H(X), or 0 if H(X) is 0.
    distinct_rows: number of distinct rows over all columns of the job.
    cohorts: by scored column the sizes of its cohorts, or with weights a sum over them. Together with `distinct` of all
        partitions of a table it gives the weights.
    distinct: by scored column the sizes of groups of rows that agree on the scored column too, likewise.
    extremes: by the name of a measure, (scored columns, 2), the lowest and highest scores, if only these are needed.
    through_host: that, and why, a table was not scored as a whole on a GPU; empty if it was, and on the CPU.
    """

    values: dict[str, npt.NDArray[Any]]
    weights: list[float]
    distinct_rows: int
    cohorts: list[Sizes | LogSum]
    distinct: list[Sizes | LogSum]
    extremes: dict[str, npt.NDArray[np.float64]]
    through_host: str = ""

    @property
    def place(self) -> str:
        """Return where the scores lie, "host" or "device"."""
        return "device" if any(hasattr(values, "get") for values in self.values.values()) else "host"

    def raised_to(self, least: float | None) -> EngineResult:
        """Return the result with sizes that are less raised to `least`, see `Job.least`."""
        if least is None:
            return self
        return replace(self, values={name: scores.clip(min=least) for name, scores in self.values.items()})

    def by_fold(self) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """Return the scores by measure, under "", as `AnyKnownResult` has them under "worst" and "mean"."""
        return {"": self.values}

    def weights_by_fold(self) -> dict[str, list[float]]:
        """Return the weights of the scored columns, likewise."""
        return {"": self.weights}


@dataclass(frozen=True)
class KnownSubset:
    """A set of columns, ascending, and those that are scored against an attacker who knows the others of the set."""

    columns: tuple[int, ...]
    scored_columns: tuple[int, ...]


def served(sets: Sequence[KnownSubset], columns: Collection[int]) -> list[KnownSubset]:
    """Return the sets that serve some of these scored columns, for these only."""
    some = [KnownSubset(one.columns, tuple(c for c in one.scored_columns if c in columns)) for one in sets]
    return [one for one in some if one.scored_columns]


@dataclass(frozen=True)
class AnyKnownResult:
    """What an engine gives back for an attacker who knows any of several sets of columns.

    worst, mean: by the name of a measure, (scored columns, rows), on the host or a device. weights: by scored column
    the weight of each of its sets, in their order. distinct_rows, through_host: see `EngineResult`.
    """

    worst: dict[str, npt.NDArray[Any]]
    mean: dict[str, npt.NDArray[Any]]
    weights: list[npt.NDArray[np.float64]]
    distinct_rows: int
    through_host: str = ""

    def by_fold(self) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """Return the scores by measure, under "worst" and "mean"."""
        return {"worst": self.worst, "mean": self.mean}

    def weights_by_fold(self) -> dict[str, list[float]]:
        """Return the lowest weight of each scored column, under "worst", and the mean one, under "mean"."""
        return {
            "worst": [float(weights.min()) for weights in self.weights],
            "mean": [float(weights.mean()) for weights in self.weights],
        }


class AnyKnownShares(NamedTuple):
    """How a run over sets of columns uses limited memory; no result depends on it.

    scored_columns: how many have their worst and mean computed at once.
    threads: that score sets at once.
    slots: of each thread's table of pairs, see `AnyKnownRun`.
    batch: bytes of the sets' row numbers and scores that all threads keep at once.
    """

    scored_columns: int
    threads: int
    slots: int
    batch: int


class Counter(Protocol):
    """Counts the combinations of values of sets of columns; sets are known by their places (see `SubsetCounter`)."""

    def add(self, codes: Sequence[Any], times: npt.NDArray[Any] | None = None) -> None:
        """Count further rows. times: what each counts, 0 or more (None: 1); combinations that count 0 do not occur."""

    def nbytes(self) -> int:
        """Return the bytes that the host keeps of all rows so far."""

    def combinations(self, place: int, ordered: bool = True) -> Combinations:
        """Return the combinations that occur, in the order of their codes, or in any order, which may be faster."""

    def counts(self, place: int) -> npt.NDArray[Any]:
        """Return the number of rows with each combination that occurs, in no particular order."""

    def sizes(self, place: int) -> Sizes:
        """Return how many combinations there are of each count."""


class Counting(Protocol):
    """Makes counters."""

    def counter(
        self, subsets: Sequence[Sequence[int]], cardinalities: Sequence[int], rows: int, dense: int = DENSE
    ) -> Counter:
        """Return a counter of these sets; arguments as of `SubsetCounter`."""

    def counters(
        self,
        codes: Sequence[Any],
        cardinalities: Sequence[int],
        sets: Sequence[Sequence[int]],
        times: npt.NDArray[Any] | None = None,
        differ: bool = False,
    ) -> Iterator[tuple[Counter, int]]:
        """Yield for each of these sets, of any size, a counter of all rows and the set's place there.

        times: what each row counts, 0 or more (None: 1). differ: whether no two rows are known to be equal.
        """

    def singles(
        self, codes: Sequence[Any], cardinalities: Sequence[int], often: npt.NDArray[np.uint8]
    ) -> Singles | None:
        """Return what finds single rows among these distinct rows, or None if nothing is faster than the host.

        often: 1, or 2 for a row that occurs several times in the table.
        """


class Singles(Protocol):
    """Finds rows that differ from all others on some columns."""

    def find(self, columns: Sequence[int], known: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32] | None:
        """Return the rows, ascending, that differ from all others on the columns and have no bit in `known`.

        None if there is no memory for it.
        """


class Engine(Protocol):
    """An engine: the same scores whatever the device.

    shares_distinct_rows: whether it pays to find a table's distinct rows once, on the host, for several attackers.
    """

    device: str
    shares_distinct_rows: bool

    @property
    def frames(self) -> CudfFrames | None:
        """Return what tables are read and encoded with; None for the host's own libraries."""

    def score(self, job: Job, progress: Progress) -> EngineResult:
        """Score all scored columns of the job."""

    def score_sets(
        self, job: Job, sets: Sequence[KnownSubset], progress: Progress, shares: AnyKnownShares | None = None
    ) -> AnyKnownResult:
        """Score a job against an attacker who knows any of these sets; see `attacker_scoring.score_sets`."""

    def counting(self, workers: Workers) -> AbstractContextManager[Counting]:
        """Return what makes counters while it is open. workers: threads of the host. Raises DeviceError."""
