"""The riskiest cells of a table, and what an attacker sees of them: their cohorts, found among the codes of rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpupif.kernels import formulas

from ..encoding.column import Column
from ..engines.base import Job
from ..measures import Measure, as_risk
from ..utils.arrays import on_host
from .base import RiskyCell

# Values of which the highest is found first.
BLOCK = 1 << 10


def riskiest(cells: Iterable[RiskyCell], n: int) -> list[RiskyCell]:
    """The n riskiest of some cells, the first come first; of equal ones the earlier row, then the earlier column."""
    return sorted(cells, key=lambda cell: (-cell.risk, cell.row, cell.scored_column))[:n]


def riskiest_in(
    measure: Measure, scores: Any, shown: Sequence[Any], n: int, first: int = 0, least: float = -np.inf
) -> list[RiskyCell]:
    """Cells of some rows, from `first` on, that may be among the n riskiest of the table.

    scores: (columns, rows), by which cells are risky; cells without one (NaN) are not. shown: further scores, that the
    cells get. least: so risky at least are n cells that are known already.
    """
    found = []
    for scored_column, column in enumerate(scores):
        scored = None
        if column.dtype.kind == "f" and not (known := column == column).all():
            scored = np.flatnonzero(known)
            column = column[scored]
        if not len(column):
            continue
        risks = as_risk(measure, column)
        if risks.max() < least:
            continue
        found += [
            (value, place if scored is None else int(scored[place]), scored_column)
            for value, place in highest(risks, n)
            if value >= least
        ]
    kept = riskiest((RiskyCell(value, row, scored_column, []) for value, row, scored_column in found), n)
    return [
        RiskyCell(
            cell.risk,
            first + cell.row,
            cell.scored_column,
            [array[cell.scored_column, cell.row].item() for array in shown],
        )
        for cell in kept
    ]


def highest(column: npt.NDArray[Any], n: int) -> list[tuple[float, int]]:
    """(value, row) of the n highest values, of equal ones the first."""
    n = min(n, len(column))
    least = _nth_highest(column, n)
    above = np.flatnonzero(column > least)
    equal = np.flatnonzero(column == least)[: n - len(above)]
    rows = np.concatenate([above, equal])
    return list(zip(column[rows].astype(float).tolist(), rows.tolist(), strict=True))


def _nth_highest(column: npt.NDArray[Any], n: int) -> Any:
    """The lowest of the n highest values."""
    whole = len(column) // BLOCK * BLOCK
    if whole > n * BLOCK:
        # So high at least are n values: the highest of n blocks. Few are higher.
        of_blocks = column[:whole].reshape(-1, BLOCK).max(axis=1)
        least = np.partition(of_blocks, len(of_blocks) - n)[len(of_blocks) - n]
        column = column[column > least]
        if len(column) < n:
            return least
    return np.partition(column, len(column) - n)[len(column) - n]


def cell_records(
    cells: Sequence[RiskyCell],
    columns: Sequence[Hashable],
    measures: Sequence[str],
    seen: Sequence[Mapping[str, Any]],
    labels: Sequence[Any] | None = None,
) -> pd.DataFrame:
    """`Scores.top`: cells with the scores of these measures, and what is seen of each. labels: of their rows."""
    records = []
    for number, (cell, facts) in enumerate(zip(cells, seen, strict=True)):
        place: dict[str, Any] = {"row": cell.row} | ({} if labels is None else {"index": labels[number]})
        place["column"] = columns[cell.scored_column]
        value = {"value": facts["value"]} if "value" in facts else {}
        # There may be more scores than measures: those by which its worst attacker is known.
        records.append(place | value | dict(zip(measures, cell.scores, strict=False)) | dict(facts))
    return pd.DataFrame.from_records(records)


class CohortCount(NamedTuple):
    """Rows of a cohort (with sampling weights, units): all, those that have a value of the scored column, and those
    that lack one, where missing values are wildcards.
    """

    size: int
    equal: int
    lacking: int

    @classmethod
    def total(cls, counts: Iterable[CohortCount]) -> CohortCount:
        """Those of all pieces of a table."""
        return cls(*(sum(part) for part in zip(*counts, strict=True)))


def missing_code(job: Job, column: int) -> int:
    """The code of missing values that match any value; -1 where there is none."""
    return len(job.counts[column]) - 1 if column in job.wildcards else -1


def filter_cohort(cohort: Any, codes: Any, own: int, missing: int) -> Any:
    """Of some rows (None: of all) those with the code `own`; missing: the code that matches any, or -1."""
    here = codes if cohort is None else codes[cohort]
    agree = here == own
    if missing >= 0:
        agree = agree | (here == missing) | (own == missing)
    return np.flatnonzero(agree) if cohort is None else cohort[agree]


def count_cohort(
    job: Job, codes: Sequence[Any], times: npt.NDArray[np.int64] | None, key: Sequence[int], scored_column: int
) -> CohortCount:
    """Of some rows those in the cohort of a row with the codes `key`, when the column at `scored_column` is scored.

    times: how often each of the rows counts (None: once).
    """
    cohort = None
    # The rarest value comes first, to narrow fast.
    known = (column for column in job.known if column != scored_column)
    for column in sorted(known, key=lambda column: int(job.counts[column][key[column]])):
        cohort = filter_cohort(cohort, codes[column], key[column], missing_code(job, column))
    values = codes[scored_column] if cohort is None else codes[scored_column][cohort]
    if times is not None and cohort is not None:
        times = times[on_host(cohort)]

    def people(mask: Any) -> int:
        return int(mask.sum()) if times is None else int(times[on_host(mask)].sum())

    lacking = people(values == missing_code(job, scored_column)) if scored_column in job.wildcards else 0
    return CohortCount(
        len(values) if times is None else int(times.sum()), people(values == key[scored_column]), lacking
    )


def describe(job: Job, position: int, column: Column, code: int, count: CohortCount) -> dict[str, Any]:
    """What an attacker sees of a cell with this code in this column; see `Explainer`.

    A cell without a value has neither prior nor posterior.
    """
    cell: dict[str, Any] = {"value": column.values([code])[0], "posterior": np.nan, "prior": np.nan}
    if code < len(job.priors[position]):
        prior = float(job.priors[position][code])
        certain, accuracy = count.size - count.lacking, float(job.accuracies[position])
        cell["posterior"] = formulas.posterior.py_func(count.equal, certain, prior, accuracy) if certain else prior
        cell["prior"] = prior
    return cell | {"cohort_size": count.size if job.unit is None else count.size * job.unit}


def describe_value(job: Job, position: int, column: Column, code: int) -> dict[str, Any]:
    """What anyone sees of such a cell."""
    there = code < len(job.priors[position])
    return {"value": column.values([code])[0], "prior": float(job.priors[position][code]) if there else np.nan}
