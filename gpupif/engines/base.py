"""The interface of the engines: a `Job` of codes, an `EngineResult` of scores, and counters of combinations."""

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
# Length of an edge of a hierarchy. A path between two values with one parent has two edges: they are one level apart.
EDGE = 0.5


class Progress(Protocol):
    """Progress of scoring, in cells."""

    def advance(self, cells: int) -> None:
        """Report that another `cells` cells are scored."""


class _Silent:
    def advance(self, cells: int) -> None:
        """Report nothing."""


# Progress for cells that are not cells of the table: cells of distinct rows, or of a table of one set of columns.
SILENT: Progress = _Silent()


@dataclass(frozen=True)
class Axis:
    """The order or the hierarchy of a column's values, for the earth mover's distance.

    kind: a constant of `kernels/walks.py`.
    rank: (values,) int64. The place of each code's value among the values that occur.
    places: (values,) int64, by rank. The place of the value among all values that have a prior.
    prior: (places,) float64. The prior probability of the value at each place.
    nodes: (levels, values) int64, by rank. The value's node on each level of the hierarchy.
    masses: (nodes,) float64. The prior mass of each node.
    longest: the greatest distance between two values: 1, the number of steps, or the number of levels.
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
        """A flag: whether codes have another order than the axis."""
        return bool((self.rank[1:] < self.rank[:-1]).any())

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """The codes, in the order of the axis."""
        return np.argsort(self.rank, kind="stable")

    def only(self, codes: npt.NDArray[np.integer]) -> Axis:
        """Return the axis of some of the values. codes: the codes of these values, ascending."""
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
    """A table of codes to score, and the attacker and measures to score it for.

    codes: by column, (rows,) whole numbers below the column's cardinality, on the host or a device. Every code occurs,
        unless rows have weight 0.
    counts: by column, (values,) int64. The rows with each code, or with sampling weights the units of people.
    priors: by column, (values,) float64. The prior probability of each code: positive, but 0 for values of the table's
        own distribution that only rows of weight 0 have.
    log2_priors: by column, (values,) int64. The logarithms of the priors, in units of 2^-unit_bits bits: for the
        table's own distribution log2 count - log2 rows.
    unit_bits: by column. The number of binary digits of log2_priors after the point.
    accuracies: by column, from 0 to 1. The accuracy of the attacker's knowledge, see `kernels/formulas.py`.
    scored_columns: columns to score, by their places in codes.
    known: columns that the attacker knows, by their places in codes. While a known column is scored, it is not known.
    measures: the measures to compute for each cell.
    dtype: "float64" or "float32". The type of the scores.
    axes: by column, the order or hierarchy of its values, or None. Default None: no measure needs an axis.
    whole: by column, the number of values in the whole table and their prior mass. Default None: codes are of all
        values of the table.
    multiplicities: (rows,) int64. The multiplicity of each row. Default None: 1 each. A row with multiplicity 0 is in
    no cohort,
        but its cells are scored.
    scores_on: "host", "device" (the CPU engine uses the host), or "either": the device that computes them, perhaps as
        `SharedScores`. Default "host".
    extremes_only: whether only the lowest and the highest score of each scored column are needed. Default no.
    unit: people for each unit of times and counts, with sampling weights. Default None: no sampling weights.
    wildcards: columns whose missing values match every value. The last code is the missing value and has no prior.
    class_without_scored_column: whether a row's equivalence class leaves out the scored column, that is, equals its
        cohort, although the attacker may know the column while other columns are scored. Default no.
    least: smaller sizes are raised to this, before any mean over attackers: 1 if a row whose cohort is empty counts
        itself. Default None: sizes are not changed.
    distinct: whether all rows are known to be distinct, which saves the search for equal rows. Default no.
    row_counts: (rows,) int64, with sampling weights. Rows of the table for each row. Default None: 1 each.
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
    multiplicities: npt.NDArray[np.int64] | None = None
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
        """The number of rows in `codes`."""
        return len(self.codes[0])

    @property
    def total(self) -> int:
        """The sum of all multiplicities: the rows of the table, or with sampling weights the units of people."""
        return self.rows if self.multiplicities is None else int(self.multiplicities.sum())

    @property
    def cardinalities(self) -> list[int]:
        """The number of values of each column."""
        return [len(counts) for counts in self.counts]

    @property
    def layout(self) -> KeyLayout:
        """The layout of row keys over all columns."""
        return KeyLayout.from_cardinalities(self.cardinalities)

    def on_host(self) -> Job:
        """Return the job with all codes on the host."""
        return replace(self, codes=[on_host(codes) for codes in self.codes])

    def with_ordered_codes(self, bring: Callable[[Any], Any] = lambda array: array) -> Job:
        """Return the job with codes renumbered in the order of the axes. Call it once only.

        bring: copies an array to the device that has the codes.
        """
        if self.axes is None:
            return self
        moved = {column: axis for column, axis in enumerate(self.axes) if axis is not None and axis.moves}
        if not moved:
            return self
        codes = list(self.codes)
        by_code: list[list[Any]] = [list(self.counts), list(self.priors), list(self.log2_priors)]
        for column, axis in moved.items():
            # A missing value that is a wildcard has no place on the axis: its code stays the last.
            rest = np.arange(len(axis.rank), len(self.counts[column]))
            narrow = np.append(axis.rank, rest).astype(codes[column].dtype)
            codes[column] = (bring(narrow) if hasattr(codes[column], "get") else narrow)[codes[column]]
            for arrays in by_code:
                values = arrays[column]
                arrays[column] = np.append(values[axis.order], values[len(axis.rank) :])
        counts, priors, log2_priors = by_code
        return replace(self, codes=codes, counts=counts, priors=priors, log2_priors=log2_priors)


def select_columns(job: Job, columns: Sequence[int]) -> Job:
    """Return the job on a table of some of its columns, with the scored and known columns that are among them."""
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
    """The result of an engine for an attacker who knows one list of columns.

    values: by the name of a measure, (scored columns, rows), each scored column contiguous, on the host or a device; or
        `SharedScores`.
    weights: by scored column, H(X|known) / H(X), or 0 if H(X) is 0.
    distinct_rows: the number of distinct rows over all columns of the job.
    cohorts: by scored column, the sizes of its cohorts; with sampling weights, a sum over the sizes. The weights of a
        table follow from `cohorts` and `distinct` of all its partitions.
    distinct: by scored column, the sizes (or the sum) of sets of rows that agree on the known and the scored column.
    extremes: by the name of a measure, (scored columns, 2). The lowest and the highest score, if only these are needed.
    through_host: the reason why a table was not scored as a whole on a GPU; empty on the CPU, and if it was.
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
        """The memory that holds the scores: "host" or "device"."""
        return "device" if any(hasattr(values, "get") for values in self.values.values()) else "host"

    def raised_to(self, least: float | None) -> EngineResult:
        """Return the result with smaller scores raised to `least`; see `Job.least`."""
        if least is None:
            return self
        return replace(self, values={name: scores.clip(min=least) for name, scores in self.values.items()})

    def by_aggregate(self) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """Return the scores by measure, under "". `AnyKnownResult.by_aggregate` has "worst" and "mean" instead."""
        return {"": self.values}

    def weights_by_aggregate(self) -> dict[str, list[float]]:
        """Return the weights of the scored columns, under ""."""
        return {"": self.weights}


@dataclass(frozen=True)
class KnownSubset:
    """A set of columns for an attacker who knows all of them except the scored column.

    columns: places of the set's columns, ascending. scored_columns: the columns of the set to score.
    """

    columns: tuple[int, ...]
    scored_columns: tuple[int, ...]


def served(sets: Sequence[KnownSubset], columns: Collection[int]) -> list[KnownSubset]:
    """Return the sets with some of these scored columns, reduced to these scored columns."""
    some = [KnownSubset(one.columns, tuple(c for c in one.scored_columns if c in columns)) for one in sets]
    return [one for one in some if one.scored_columns]


@dataclass(frozen=True)
class AnyKnownResult:
    """The result of an engine for an attacker who knows any of several sets of columns.

    worst, mean: by the name of a measure, (scored columns, rows), on the host or a device.
    weights: by scored column, the weight of each of its sets, in the order of the sets.
    distinct_rows, through_host: see `EngineResult`.
    """

    worst: dict[str, npt.NDArray[Any]]
    mean: dict[str, npt.NDArray[Any]]
    weights: list[npt.NDArray[np.float64]]
    distinct_rows: int
    through_host: str = ""

    def by_aggregate(self) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """Return the scores by measure, under "worst" and "mean"."""
        return {"worst": self.worst, "mean": self.mean}

    def weights_by_aggregate(self) -> dict[str, list[float]]:
        """Return the lowest weight of each scored column under "worst", and the mean weight under "mean"."""
        return {
            "worst": [float(weights.min()) for weights in self.weights],
            "mean": [float(weights.mean()) for weights in self.weights],
        }


class AnyKnownShares(NamedTuple):
    """The shares of limited memory in a run over sets of columns. No result depends on them.

    scored_columns: the number of scored columns whose worst and mean are computed at once.
    threads: the number of threads that score sets at once.
    slots: the number of slots of each thread's table of pairs, see `AnyKnownRun`.
    batch: bytes of the sets' row numbers and scores that all threads keep at once.
    """

    scored_columns: int
    threads: int
    slots: int
    batch: int


class Counter(Protocol):
    """A counter of the combinations of values of sets of columns. A set is named by its place (see `SubsetCounter`)."""

    def add(self, codes: Sequence[Any], multiplicities: npt.NDArray[Any] | None = None) -> None:
        """Count further rows. multiplicities: (rows,), 0 or more; None: 1. A combination of count 0 is absent."""

    def nbytes(self) -> int:
        """Return the bytes of the host's memory that hold the counts so far."""

    def combinations(self, place: int, ordered: bool = True) -> Combinations:
        """Return the combinations that occur. ordered: by their codes; any other order may be faster."""

    def counts(self, place: int) -> npt.NDArray[Any]:
        """Return the number of rows with each combination that occurs, in no particular order."""

    def sizes(self, place: int) -> Sizes:
        """Return the number of combinations of each count."""


class Counting(Protocol):
    """A maker of counters."""

    def counter(
        self, subsets: Sequence[Sequence[int]], cardinalities: Sequence[int], rows: int, dense: int = DENSE
    ) -> Counter:
        """Return a counter of these sets. `SubsetCounter` describes the arguments."""

    def counters(
        self,
        codes: Sequence[Any],
        cardinalities: Sequence[int],
        sets: Sequence[Sequence[int]],
        multiplicities: npt.NDArray[Any] | None = None,
        differ: bool = False,
    ) -> Iterator[tuple[Counter, int]]:
        """Yield for each set, of any size, a counter of all rows and the place of the set in the counter.

        multiplicities: (rows,) multiplicities, 0 or more; None: 1. differ: whether all rows are known to be distinct.
        """

    def singles(
        self, codes: Sequence[Any], cardinalities: Sequence[int], often: npt.NDArray[np.uint8]
    ) -> Singles | None:
        """Return a finder of single rows among these distinct rows, or None if the engine has none that is faster.

        often: (rows,) 1 for multiplicity 1, 2 for any higher multiplicity.
        """


class Singles(Protocol):
    """A finder of rows that differ from all other rows on some columns."""

    def find(self, columns: Sequence[int], known: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32] | None:
        """Return the rows, ascending, that differ from all other rows on the columns and have no bit in `known`.

        Return None if there is not enough memory.
        """


class Engine(Protocol):
    """An engine. All engines compute the same scores.

    shares_distinct_rows: whether it saves time to find a table's distinct rows once, on the host, for all attackers.
    """

    device: str
    shares_distinct_rows: bool

    @property
    def frames(self) -> CudfFrames | None:
        """The library that reads and encodes tables on the device; None if the host's libraries do."""

    def score(self, job: Job, progress: Progress) -> EngineResult:
        """Score all scored columns of the job."""

    def score_sets(
        self, job: Job, sets: Sequence[KnownSubset], progress: Progress, shares: AnyKnownShares | None = None
    ) -> AnyKnownResult:
        """Score a job against an attacker who knows any of these sets; see `attacker_scoring.score_sets`."""

    def counting(self, workers: Workers) -> AbstractContextManager[Counting]:
        """Return a context that makes counters while it is open. workers: threads of the host. Raise DeviceError."""
