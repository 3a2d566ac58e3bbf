"""Of all attackers who know any few of the columns, the one against whom a cell is worst off."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpupif.kernels.log_units import LOG_BITS

from ..engines.base import Job
from ..engines.cpu.engine import CpuEngine
from ..engines.part_jobs import source_of
from ..measures import resolve_measures
from ..utils.arrays import on_host
from ..utils.progress import Reporter
from .riskiest import describe, label_of, scores_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from .known_subsets import AnyKnownScores


def describe_worst(scores: AnyKnownScores, row: int, target: int, by: str) -> dict[str, Any]:
    """One cell: where it is, its value, its worst scores, and the attacker who is the worst by one measure."""
    job, names = scores._job, scores.subsets.names
    position = job.targets[target]
    column = scores._encoded.columns[position]
    code = int(job.codes[position][row])
    worst = find_worst(job, row, position, scores.subsets.places_of(position), scores._subset_weights[target], by)
    own = scores_of(scores, row, target)
    cell = describe(job, position, column, code, own, worst.equal, worst.size, worst.lacking)
    return label_of(scores, row) | cell | {"known": worst.called(names)}


class WorstAttacker(NamedTuple):
    """The columns that the attacker knows, by place; how many rows the cell's cohort has, of these its value, and of
    these no value, where missing values are wildcards.
    """

    known: tuple[int, ...]
    size: int
    equal: int
    lacking: int

    def called(self, names: Sequence[Hashable]) -> str:
        """The columns by name."""
        return ", ".join(str(names[place]) for place in self.known)


def find_worst(
    job: Job,
    row: int,
    position: int,
    subsets: Sequence[tuple[int, ...]],
    weights: npt.NDArray[np.float64],
    by: str,
) -> WorstAttacker:
    """The attacker against whom one row is worst off in the column at `position`, of several the first.

    job: with the codes of all rows, or of different ones with `times`. subsets: what the attackers know; weights: of
    the column against each of them.
    """
    code, missing = int(job.codes[position][row]), len(job.priors[position])
    found = [_values_in(job.codes[position], cohort, job.times) for cohort in _cohorts(job, row, subsets)]
    scores = _own_scores(job, position, code, found, by)
    measure = resolve_measures(by)[0]
    if measure.weighted:
        scores = scores * weights
    risks = np.where(np.isnan(scores), -np.inf, -scores if measure.low_is_risky else scores)
    worst = int(np.argmax(risks))
    values, counts = found[worst]
    equal, lacking = (int(counts[values == one].sum()) for one in (code, missing))
    return WorstAttacker(subsets[worst], int(counts.sum()), equal, lacking if position in job.wildcards else 0)


def _cohorts(job: Job, row: int, subsets: Sequence[tuple[int, ...]]) -> Iterator[Any]:
    """For each subset where the rows are that agree with one on it; neighbours share what they have in common."""
    path: list[tuple[int, Any]] = []
    for subset in subsets:
        same = 0
        while same < len(path) and path[same][0] == subset[same]:
            same += 1
        del path[same:]
        for column in subset[same:]:
            before = path[-1][1] if path else None
            agree = _agree(job, column, row, before)
            path.append((column, np.flatnonzero(agree) if before is None else before[agree]))
        yield path[-1][1] if path else slice(None)


def _agree(job: Job, column: int, row: int, rows: Any) -> Any:
    """Which rows, of some or all (None), agree with one on a column."""
    own = job.codes[column][row]
    codes = job.codes[column] if rows is None else job.codes[column][rows]
    agree = codes == own
    if column in job.wildcards:
        missing = len(job.priors[column])
        agree = agree | (codes == missing) | (own == missing)
    return agree


def _values_in(
    codes: Any, cohort: Any, times: npt.NDArray[np.int64] | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The values of a cohort, as codes, and how many rows have each."""
    if times is None:
        # Of codes on a device, CuPy's.
        values, counts = map(on_host, np.unique(codes[cohort], return_counts=True))
        return values, counts
    cohort = on_host(cohort) if not isinstance(cohort, slice) else cohort
    values, place = np.unique(on_host(codes)[cohort], return_inverse=True)
    counts = np.zeros(len(values), np.int64)
    np.add.at(counts, place, times[cohort])
    return values[counts > 0], counts[counts > 0]


def _own_scores(
    job: Job, position: int, code: int, found: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]], by: str
) -> npt.NDArray[np.float64]:
    """The score of a value in each of several cohorts: those of a table in which they are all that is known."""
    cohorts = len(found)
    # Behind the rows of the cohorts, for each of them the cell that is asked about, which counts 0.
    number = np.repeat(np.arange(cohorts), [len(values) for values, _ in found])
    table = replace(
        job,
        codes=[
            np.concatenate([number, np.arange(cohorts)]).astype(np.uint32),
            np.concatenate([*(values for values, _ in found), np.full(cohorts, code)]).astype(np.uint32),
        ],
        counts=[np.ones(cohorts, np.int64), job.counts[position]],
        priors=[np.ones(cohorts), job.priors[position]],
        log2_priors=[np.zeros(cohorts, np.int64), job.log2_priors[position]],
        unit_bits=[LOG_BITS, job.unit_bits[position]],
        accuracies=[1.0, job.accuracies[position]],
        targets=[1],
        known=[0],
        measures=resolve_measures(source_of(resolve_measures(by)[0])),
        dtype="float64",
        scores_on="host",
        axes=None if job.axes is None else [None, job.axes[position]],
        times=np.concatenate([*(counts for _, counts in found), np.zeros(cohorts)]).astype(np.int64),
        wildcards=[1] if position in job.wildcards else [],
    )
    values = CpuEngine().score(table, Reporter(False)).values
    own: npt.NDArray[np.float64] = next(iter(values.values()))[0][len(number) :]
    return own
