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
    cell = describe(job, position, column, code, scores_of(scores, row, target), worst.equal, worst.size)
    return label_of(scores, row) | cell | {"known": worst.called(names)}


class WorstAttacker(NamedTuple):
    """The columns that the attacker knows, by place; how many rows the cell's cohort has, and of these its value."""

    known: tuple[int, ...]
    size: int
    equal: int

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
    code = int(job.codes[position][row])
    found = [_values_in(job.codes[position], cohort, job.times) for cohort in _cohorts(job, row, subsets)]
    gains = _own_scores(job, position, code, found, by)
    measure = resolve_measures(by)[0]
    if measure.weighted:
        gains = gains * weights
    worst = int(np.argmin(gains) if measure.low_is_risky else np.argmax(gains))
    values, counts = found[worst]
    return WorstAttacker(subsets[worst], int(counts.sum()), int(counts[values == code][0]))


def _cohorts(job: Job, row: int, subsets: Sequence[tuple[int, ...]]) -> Iterator[Any]:
    """For each subset where the rows are that agree with one on it; neighbours share what they have in common."""
    path: list[tuple[int, Any]] = []
    for subset in subsets:
        same = 0
        while same < len(path) and path[same][0] == subset[same]:
            same += 1
        del path[same:]
        for column in subset[same:]:
            codes = job.codes[column]
            before = path[-1][1] if path else None
            if before is None:
                path.append((column, np.flatnonzero(codes == codes[row])))
            else:
                path.append((column, before[codes[before] == codes[row]]))
        yield path[-1][1] if path else slice(None)


def _values_in(
    codes: Any, cohort: Any, times: npt.NDArray[np.int64] | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The values of a cohort, as codes, and how many rows have each. codes: where `times` are given, of the host."""
    if times is None:
        # Of codes on a device, CuPy's.
        values, counts = map(on_host, np.unique(codes[cohort], return_counts=True))
    else:
        values, place = np.unique(codes[cohort], return_inverse=True)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, place, times[cohort])
    return values, counts


def _own_scores(
    job: Job, position: int, code: int, found: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]], by: str
) -> npt.NDArray[np.float64]:
    """The score of a value in each of several cohorts: those of a table in which they are all that is known."""
    cohorts = len(found)
    table = replace(
        job,
        codes=[
            np.repeat(np.arange(cohorts, dtype=np.uint32), [len(values) for values, _ in found]),
            np.concatenate([values for values, _ in found]),
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
        axes=None if job.axes is None else [None, job.axes[position]],
        times=np.concatenate([counts for _, counts in found]).astype(np.int64),
    )
    values = CpuEngine().score(table, Reporter(False)).values
    own: npt.NDArray[np.float64] = next(iter(values.values()))[0][table.codes[1] == code]
    return own
