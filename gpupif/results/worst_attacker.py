"""Of all attackers who know any few of the columns, the one against whom a cell is worst off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.log_units import LOG_BITS

from ..attack.any_known import KnownSubsets
from ..encoding.column import Column
from ..engines.attacker_scoring import score_sets
from ..engines.base import SILENT, Engine, Job
from ..engines.cpu.engine import CpuEngine
from ..engines.individual_risk import individual_risk
from ..engines.worst_and_mean import worst_place
from ..measures import POPULATION_SIZE, Measure, resolve_measures
from ..utils.arrays import on_host
from ..utils.progress import Reporter
from .riskiest import CohortCount, describe, describe_value, filter_cohort, missing_code


class WorstAttacker(NamedTuple):
    """The columns that the attacker knows, by place, and the cell's cohort."""

    known: tuple[int, ...]
    cohort: CohortCount


def describe_worst(
    job: Job,
    column: Column,
    key: Sequence[int],
    position: int,
    subsets: KnownSubsets,
    weights: npt.NDArray[np.float64],
    by: Measure,
) -> dict[str, Any]:
    """What the attacker sees of a cell who is the worst for it, see `Explainer`; for the arguments see `find_worst`.

    Of the size of its cohorts in a population, whose rows are not at hand, nobody is said to be the worst.
    """
    code = key[position]
    if by.name == POPULATION_SIZE.name:
        return describe_value(job, position, column, code)
    worst = find_worst(job, key, position, subsets.places_of(position), weights, by)
    known = ", ".join(str(subsets.names[place]) for place in worst.known)
    return describe(job, position, column, code, worst.cohort) | {"known": known}


def weights_of_sets(engine: Engine, subsets: KnownSubsets, job: Job, position: int) -> npt.NDArray[np.float64]:
    """The weight of the column at `position` against each of the attackers; job: with the codes of distinct rows."""
    one = replace(job, scored_columns=[position], measures=resolve_measures("cohort_size"), distinct=True)
    result = score_sets(engine, one, subsets.sets, SILENT)
    return result.weights[0]


def find_worst(
    job: Job,
    key: Sequence[int],
    position: int,
    subsets: Sequence[tuple[int, ...]],
    weights: npt.NDArray[np.float64],
    by: Measure,
) -> WorstAttacker:
    """The attacker against whom one row is worst off in the column at `position`, of several the first.

    job: with the codes of all rows, or of different ones with `times`. key: the codes of the row. subsets: what the
    attackers know; weights: of the column against each of them.
    """
    code = key[position]
    counts_rows = job.unit is not None and by.of_rows_and_people
    found, rows = [], []
    for cohort in _cohorts(job, key, subsets):
        found.append(_values_in(job.codes[position], cohort, job.times))
        if counts_rows:
            rows.append(_rows_in(job, cohort))
    if counts_rows:
        # To who does not know the column the cohort is the class.
        people = [int(counts.sum()) * float(job.unit or 1) for _, counts in found]
        scores = individual_risk(np.array(rows), np.array(people))
    else:
        scores = _own_scores(job, position, code, found, by)
    if by.weighted:
        scores = scores * weights
    worst = worst_place(by, scores)
    values, counts = found[worst]
    equal, lacking = (int(counts[values == one].sum()) for one in (code, missing_code(job, position)))
    return WorstAttacker(subsets[worst], CohortCount(int(counts.sum()), equal, lacking))


def _cohorts(job: Job, key: Sequence[int], subsets: Sequence[tuple[int, ...]]) -> Iterator[Any]:
    """For each subset where the rows are that agree with this one on it; neighbours share what they have in common."""
    path: list[tuple[int, Any]] = []
    for subset in subsets:
        same = 0
        while same < len(path) and path[same][0] == subset[same]:
            same += 1
        del path[same:]
        for column in subset[same:]:
            codes, before = job.codes[column], path[-1][1] if path else None
            path.append((column, filter_cohort(before, codes, key[column], missing_code(job, column))))
        yield path[-1][1] if path else slice(None)


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


def _rows_in(job: Job, cohort: Any) -> int:
    """How many rows of the table a cohort has."""
    if job.row_counts is None:
        return job.rows if isinstance(cohort, slice) else len(cohort)
    return int(job.row_counts[on_host(cohort)].sum())


def _own_scores(
    job: Job, position: int, code: int, found: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]], by: Measure
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
        scored_columns=[1],
        known=[0],
        measures=(replace(by, weighted=False),),
        dtype="float64",
        scores_on="host",
        axes=None if job.axes is None else [None, job.axes[position]],
        times=np.concatenate([*(counts for _, counts in found), np.zeros(cohorts)]).astype(np.int64),
        wildcards=[1] if position in job.wildcards else [],
    )
    values = CpuEngine().score(table, Reporter(False)).values
    own: npt.NDArray[np.float64] = next(iter(values.values()))[0][len(number) :]
    return own
