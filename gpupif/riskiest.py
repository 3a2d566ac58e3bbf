"""The riskiest cells of a table, each with what an attacker would see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gpupif.kernels import formulas

from .errors import InputError
from .measures import MEASURES

if TYPE_CHECKING:
    import numpy.typing as npt

    from .result import Scores


def riskiest_cells(scores: Scores, n: int, by: str) -> pd.DataFrame:
    """The n riskiest cells by one measure (see `Scores.top`)."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"top: expected a number of cells of at least 1, got {n!r}.")
    table = scores.array(by)
    sign = -1 if MEASURES[by].low_is_risky else 1
    found = [(-value, row, target) for target, column in enumerate(table) for value, row in _highest(sign * column, n)]
    records = [_describe(scores, row, target) for _, row, target in sorted(found)[:n]]
    return pd.DataFrame.from_records(records)


def _highest(column: npt.NDArray[Any], n: int) -> list[tuple[float, int]]:
    """(value, row) of the n highest values, of equal ones the first."""
    n = min(n, len(column))
    least = np.partition(column, len(column) - n)[len(column) - n]
    above = np.flatnonzero(column > least)
    equal = np.flatnonzero(column == least)[: n - len(above)]
    return [(float(column[row]), int(row)) for row in (*above, *equal)]


def _describe(scores: Scores, row: int, target: int) -> dict[str, Any]:
    """One cell: where it is, its value, its scores, and its cohort found anew among the codes."""
    job, frame = scores._job, scores._frame
    position = job.targets[target]
    column = scores._encoded.columns[position]
    code = int(column.codes[row])
    cohort = _cohort(job, row, position)
    count = int((column.codes[cohort] == code).sum())
    prior = float(job.priors[position][code])
    cell: dict[str, Any] = {"row": row}
    if frame.index is not None:
        cell["index"] = frame.index[row]
    cell |= {"column": column.name, "value": column.values([code])[0]}
    cell |= {measure: scores.array(measure)[target, row].item() for measure in scores.measures}
    cell["posterior"] = formulas.posterior(count, len(cohort), prior, float(job.accuracies[position]))
    cell["prior"] = prior
    cell["cohort_size"] = len(cohort)
    return cell


def _cohort(job: Any, row: int, target: int) -> npt.NDArray[np.intp]:
    """Rows that agree with one row on every column the attacker knows; the rarest value first, to narrow fast."""
    known = [column for column in job.known if column != target]
    known.sort(key=lambda column: job.counts[column][job.codes[column][row]])
    if not known:
        return np.arange(job.rows)
    cohort = np.flatnonzero(job.codes[known[0]] == job.codes[known[0]][row])
    for column in known[1:]:
        codes = job.codes[column]
        cohort = cohort[codes[cohort] == codes[row]]
    return cohort
