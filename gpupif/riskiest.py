"""The riskiest cells of a table, each with what an attacker would see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gpupif.kernels import formulas

from .errors import InputError
from .measures import resolve_measures

if TYPE_CHECKING:
    import numpy.typing as npt

    from .columns import Column
    from .engines.base import Job
    from .result import Scores


def riskiest_cells(scores: Scores, n: int, by: str) -> pd.DataFrame:
    """The n riskiest cells by one measure (see `Scores.top`)."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"top: expected a number of cells of at least 1, got {n!r}.")
    table = scores._values_of(by)
    sign = -1 if resolve_measures(by)[0].low_is_risky else 1
    find = _highest_known if scores._job.wildcards else highest
    found = [(-value, row, target) for target, column in enumerate(table) for value, row in find(sign * column, n)]
    records = [_describe(scores, row, target) for _, row, target in sorted(found)[:n]]
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


def _describe(scores: Scores, row: int, target: int) -> dict[str, Any]:
    """One cell: where it is, its value, its scores, and its cohort found anew among the codes."""
    job, frame = scores._job, scores._frame
    position = job.targets[target]
    column = scores._encoded.columns[position]
    code = int(column.codes[row])
    known = [other for other in job.known if other != position]
    count, size, lacking = int(column.counts[code]), job.rows, 0
    if position in job.wildcards:
        lacking = column.missing_rows
    if known:
        cohort = _cohort(job, row, known)
        count, size = int((column.codes[cohort] == code).sum()), len(cohort)
        if position in job.wildcards:
            lacking = int((column.codes[cohort] == column.cardinality - 1).sum())
    label = {"row": row} if frame.index is None else {"row": row, "index": frame.index[row]}
    found = {measure: scores._values_of(measure)[target, row].item() for measure in scores.measures}
    return label | describe(job, position, column, code, found, count, size, lacking)


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

    lacking: of these, rows without a value. A cell without one has neither prior nor posterior.
    """
    cell = {"column": column.name, "value": column.values([code])[0], **scores}
    prior = chance = np.nan
    if code < len(job.priors[position]):
        prior = float(job.priors[position][code])
        chance = formulas.posterior(count, size - lacking, prior, float(job.accuracies[position]))
    cell["posterior"] = chance
    cell["prior"] = prior
    cell["cohort_size"] = size
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
