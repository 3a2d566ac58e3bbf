"""The summary of a run whose scores were never in memory together, exact all the same."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..attack.priors import Prior
from ..attack.weights import Units
from ..engines.base import Job
from ..io.ipc_batches import BatchReader, read_batch
from ..results.figures import ROW_MEASURES
from ..results.riskiest import describe
from ..results.summary import PERCENTILES
from ..utils.percentiles import ONCE, percentiles
from .chunks import TableChunks
from .gather import Cell, Facts, Gatherer

if TYPE_CHECKING:
    import numpy.typing as npt


def summary_columns(
    job: Job,
    prior_of: Mapping[Hashable, Prior],
    chunks: TableChunks,
    facts: Sequence[Facts],
    weights: Sequence[float],
    gains: Callable[[int], Sequence[Path]],
) -> pd.DataFrame:
    """`Summary.columns`. facts: of all chunks. gains: of a target, the files of the CIG that occur in its parts."""
    names = [chunks.columns[target].name for target in job.targets]
    rows = []
    for place, (name, target) in enumerate(zip(names, job.targets, strict=True)):
        prior = prior_of[name]
        row: dict[str, float] = {"distinct_values": prior.column.cardinality, "prior_entropy": prior.entropy}
        if "cig" in facts[0].sums:
            total = _sum(facts, "cig", place)
            found = _numbers(gains(target), job.dtype)
            median, high = percentiles(found, chunks.rows, [50, 95])
            most = _highest(facts, "cig", place)
            row |= {"cig_mean": total / chunks.rows, "cig_median": median, "cig_p95": high, "cig_max": most}
            row["fig"] = total
        for measure, figures in ROW_MEASURES.items():
            if measure in facts[0].sums:
                all_of = {
                    "mean": _sum(facts, measure, place) / chunks.rows,
                    "max": _highest(facts, measure, place),
                    "min": min(chunk.lowest[measure][place] for chunk in facts) if "min" in figures else 0.0,
                }
                if all_of["max"] == 0:
                    all_of["min"] = 0.0
                row |= {f"{measure}_{figure}": all_of[figure] for figure in figures}
        if "csf" in facts[0].sums:
            rows_of = chunks.rows - (chunks.columns[target].missing_rows if target in job.wildcards else 0)
            row |= {"csf_mean": np.nan, "csf_max": np.nan}
            if rows_of:
                row |= {"csf_mean": _sum(facts, "csf", place) / rows_of, "csf_max": _highest(facts, "csf", place)}
        rows.append(row | {"weight": weights[place]})
    return pd.DataFrame.from_records(rows, index=pd.Index(names, name="column", tupleize_cols=False))


def _sum(facts: Sequence[Facts], measure: str, place: int) -> float:
    """Exactly the sum of the sums of all chunks, so that it does not depend on their order."""
    return math.fsum(part for chunk in facts for part in chunk.sums[measure][place])


def _highest(facts: Sequence[Facts], measure: str, place: int) -> float:
    return max(chunk.highest[measure][place] for chunk in facts)


def _numbers(files: Sequence[Path], dtype: str) -> Callable[[], Iterator[tuple[Any, Any]]]:
    """The numbers in these files and how often each occurs, as scores of this type have them."""

    def pieces() -> Iterator[tuple[Any, Any]]:
        for file in files:
            values, times = read_batch(file)
            yield values.astype(dtype).astype(np.float64), times

    return pieces


def row_gain_percentiles(gatherer: Gatherer, chunks: TableChunks) -> dict[int, float]:
    """PIF by percentile, empty where CIG was not scored."""
    if not any(measure.name == "cig" for measure in gatherer.job.measures):
        return {}

    def pieces() -> Iterator[tuple[Any, Any]]:
        for number in range(len(chunks.sizes)):
            with BatchReader(gatherer.gains(number)) as reader:
                yield reader.arrays(0)[0], ONCE

    return dict(zip(PERCENTILES, percentiles(pieces, chunks.rows, PERCENTILES), strict=True))


def riskiest_cells(
    job: Job, names: Sequence[str], chunks: TableChunks, cells: Sequence[Cell], units: Units | None = None
) -> pd.DataFrame:
    """`Summary.top`: cells with what an attacker would see, their cohorts counted among all codes.

    names: of the measures that they have scores of. units: of the weights, whose codes are the chunks' last column.
    """
    keys = [codes_of_row(chunks, cell.row) for cell in cells]
    found = np.zeros((len(cells), 3), np.int64)
    for number in range(len(chunks.sizes)):
        codes = chunks.codes(number)
        times = None if units is None else units.times(codes[-1])
        for place, (cell, key) in enumerate(zip(cells, keys, strict=True)):
            found[place] += _count(job, codes, times, key, job.targets[cell.target])
    records = []
    for cell, key, (size, count, lacking) in zip(cells, keys, found.tolist(), strict=True):
        target = job.targets[cell.target]
        scores = dict(zip(names, cell.scores, strict=True))
        column = chunks.columns[target]
        records.append({"row": cell.row} | describe(job, target, column, key[target], scores, count, size, lacking))
    return pd.DataFrame.from_records(records)


def codes_of_row(chunks: TableChunks, row: int) -> list[int]:
    """The codes of one row."""
    ends = list(accumulate(chunks.sizes))
    number = bisect_right(ends, row)
    place = row - (ends[number] - chunks.sizes[number])
    return [int(codes[place]) for codes in chunks.codes(number)]


def _count(
    job: Job,
    codes: Sequence[npt.NDArray[Any]],
    times: npt.NDArray[np.int64] | None,
    key: Sequence[int],
    target: int,
) -> tuple[int, int, int]:
    """Rows of a chunk in the cohort of a row with these codes, those of them with its value of the target too, and
    those without a value of it, where missing values are wildcards.

    times: how many people, in units, rows stand for, where that is to be counted.
    """
    known = sorted((column for column in job.known if column != target), key=lambda c: int(job.counts[c][key[c]]))
    cohort = None
    for column in known:
        own = codes[column] if cohort is None else codes[column][cohort]
        agree = own == key[column]
        if column in job.wildcards:
            missing = len(job.counts[column]) - 1
            agree = agree | (own == missing) | (key[column] == missing)
        cohort = np.flatnonzero(agree) if cohort is None else cohort[agree]
    cohort = np.arange(len(codes[target])) if cohort is None else cohort
    values = codes[target][cohort]
    equal = cohort[values == key[target]]
    lacking = cohort[values == len(job.counts[target]) - 1] if target in job.wildcards else cohort[:0]
    if times is None:
        return len(cohort), len(equal), len(lacking)
    return int(times[cohort].sum()), int(times[equal].sum()), int(times[lacking].sum())
