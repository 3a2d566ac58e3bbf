"""The riskiest cells of a table, each with what an attacker would see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gpupif.kernels import formulas

from ..measures import as_risk, find_measure
from ..utils.arrays import on_host
from ..utils.validation import whole_number

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..encoding.column import Column
    from ..engines.base import Job
    from .scores import Scores


def riskiest_cells(scores: Scores, n: int, by: str) -> pd.DataFrame:
    """The n riskiest cells by one measure (see `Scores.top`)."""
    n = whole_number("top", n, "cells")
    table = scores._values_of(by)
    measure = find_measure(by)
    find = _highest_known if scores._job.wildcards else highest
    found = [
        (-value, row, target) for target, column in enumerate(table) for value, row in find(as_risk(measure, column), n)
    ]
    records = [scores._describe(row, target, by) for _, row, target in sorted(found)[:n]]
    return pd.DataFrame.from_records(records)


def highest(column: npt.NDArray[Any], n: int) -> list[tuple[float, int]]:
    """(value, row) of the n highest values, of equal ones the first."""
    n = min(n, len(column))
    least = np.partition(column, len(column) - n)[len(column) - n]
    above = np.flatnonzero(column > least)
    equal = np.flatnonzero(column == least)[: n - len(above)]
    rows = np.concatenate([above, equal])
    return list(zip(column[rows].astype(float).tolist(), rows.tolist(), strict=True))


def _highest_known(column: npt.NDArray[Any], n: int) -> list[tuple[float, int]]:
    """As `highest`, without cells that have no score, for their value is missing."""
    scored = np.flatnonzero(~np.isnan(column))
    return [(value, int(scored[row])) for value, row in highest(column[scored], n)] if len(scored) else []


def describe_cell(scores: Scores, row: int, target: int) -> dict[str, Any]:
    """One cell: where it is, its value, its scores, and its cohort found anew among the codes."""
    job = scores._job
    position = job.targets[target]
    column = scores._encoded.columns[position]
    code = int(column.codes[row])
    known = [other for other in job.known if other != position]
    wild = position in job.wildcards
    count, size = int(job.counts[position][code]), job.total
    lacking = int(job.counts[position][-1]) if wild else 0
    if known:
        cohort = _cohort(job, row, known)
        codes = column.codes[cohort]
        count, size = _people(job, cohort[codes == code]), _people(job, cohort)
        lacking = _people(job, cohort[codes == column.cardinality - 1]) if wild else 0
    own = scores_of(scores, row, target)
    return label_of(scores, row) | describe(job, position, column, code, own, count, size, lacking)


def _people(job: Job, rows: Any) -> int:
    """How many these rows are, with sampling weights in units."""
    return len(rows) if job.times is None else int(job.times[on_host(rows)].sum())


def label_of(scores: Scores, row: int) -> dict[str, Any]:
    """Where a row is."""
    index = scores._frame.index
    return {"row": row} if index is None else {"row": row, "index": index[row]}


def scores_of(scores: Scores, row: int, target: int) -> dict[str, Any]:
    """All scores of a cell."""
    return {measure: scores._values_of(measure)[target, row].item() for measure in scores.measures}


def describe(
    job: Job,
    position: int,
    column: Column,
    code: int,
    scores: dict[str, Any],
    count: int,
    size: int,
    lacking: int = 0,
) -> dict[str, Any]:
    """What is said of a cell with this code in this column; `count` of the `size` rows of its cohort have it too.

    lacking: of these, rows without a value. A cell without one has neither prior nor posterior. With sampling weights
    all are in units.
    """
    cell = {"column": column.name, "value": column.values([code])[0], **scores}
    prior = chance = np.nan
    if code < len(job.priors[position]):
        prior = float(job.priors[position][code])
        certain = size - lacking
        chance = formulas.posterior(count, certain, prior, float(job.accuracies[position])) if certain else prior
    cell["posterior"] = chance
    cell["prior"] = prior
    cell["cohort_size"] = size if job.unit is None else size * job.unit
    return cell


def _cohort(job: Any, row: int, known: Sequence[int]) -> Any:
    """Where the rows that agree with one on these columns are; the rarest value comes first, to narrow fast."""
    cohort = None
    for column in sorted(known, key=lambda column: job.counts[column][int(job.codes[column][row])]):
        codes = job.codes[column] if cohort is None else job.codes[column][cohort]
        own = job.codes[column][row]
        agree = codes == own
        if column in job.wildcards:
            missing = len(job.counts[column]) - 1
            agree = agree | (codes == missing) | (own == missing)
        cohort = np.flatnonzero(agree) if cohort is None else cohort[agree]
    return cohort
