"""The cohorts of cells of a table in files, as an attacker sees them; the table is read again for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..attack.any_known import KnownSubsets
from ..attack.weights import Units
from ..encoding.column import Column
from ..encoding.merge import encode_part, number_in, recode
from ..engines.base import Engine, Job
from ..io.base import Source
from ..measures import Measure
from ..results.backing import RowExplainer, RowValues
from ..results.cell_explanations import ExplainedCells, weights_of_sets
from ..results.riskiest import RiskyCell
from ..rows.distinct import DistinctRows
from ..rows.threads import Workers
from .chunk_scores import RowReader

# What is read at once.
ROWS, BYTES = 1 << 18, 1 << 26


@dataclass(eq=False)
class FilesExplainer(RowExplainer):
    """The cohorts of cells, as one attacker sees them.

    columns: that are scored or known, and last that of the weights, if there are `units` of them; without codes of
    rows, as those of job. subsets: where the attacker knows any few columns; then the distinct rows have to fit into
    memory, as when they were scored.
    """

    source: Source
    columns: Sequence[Column]
    job: Job
    units: Units | None
    subsets: KnownSubsets | None
    engine: Engine

    def labels(self, rows: Sequence[int]) -> list[Any] | None:
        """See `Explainer`: files have none."""
        return None

    def row_values(self) -> RowValues:
        """See `RowExplainer`; raises as `values`."""
        scored_columns = self.job.scored_columns
        rows = RowReader[list[npt.NDArray[Any]]](
            (codes for codes, _ in self._pieces()),
            0,
            lambda codes: len(codes[0]),
            lambda codes, some: [column[some] for column in codes],
        )

        def between(start: int, stop: int) -> Callable[[int], npt.NDArray[Any]]:
            pieces = list(rows.between(start, stop))
            return lambda scored_column: np.concatenate([codes[scored_columns[scored_column]] for codes in pieces])

        return RowValues([self.columns[scored_column] for scored_column in scored_columns], between)

    def values(self, cells: Sequence[RiskyCell]) -> list[dict[str, Any]]:
        """See `Explainer`; raises TableReadError where a file is not what it was."""
        return self._asked(cells).values()

    def explain(self, cells: Sequence[RiskyCell], by: Measure) -> list[dict[str, Any]]:
        """See `Explainer`; raises as `values`."""
        asked, subsets = self._asked(cells), self.subsets
        if subsets is None:
            return asked.explain(asked.total(asked.count(*piece) for piece in self._pieces()))
        weights_of = partial(weights_of_sets, self.engine, subsets)
        return asked.explain_worst(self._distinct_rows(), subsets, weights_of, by)

    def _distinct_rows(self) -> Job:
        """The job with the codes of all distinct rows."""
        layout = self.job.layout
        with Workers() as workers:
            rows = DistinctRows(layout.words, 2, workers)
            for codes, times in self._pieces():
                ones = np.ones(len(codes[0]), np.int64)
                rows.add(layout.pack(codes, workers), ones, ones if times is None else times)
        row_counts, times = rows.sums
        return replace(self.job, codes=layout.unpack(rows.keys), times=times, row_counts=row_counts)

    def _asked(self, cells: Sequence[RiskyCell]) -> ExplainedCells:
        keys = self._keys(cells)
        return ExplainedCells(self.job, self.columns, cells, [keys[cell.row] for cell in cells])

    def _keys(self, cells: Sequence[RiskyCell]) -> dict[int, list[int]]:
        """The codes of the rows of cells."""
        wanted = sorted({cell.row for cell in cells})
        found: dict[int, list[int]] = {}
        start = 0
        for codes, _ in self._pieces():
            size = len(codes[0])
            for row in wanted[len(found) :]:
                if row >= start + size:
                    break
                found[row] = [int(column[row - start]) for column in codes]
            start += size
            if len(found) == len(wanted):
                break
        return found

    def _pieces(self) -> Iterator[tuple[list[npt.NDArray[Any]], npt.NDArray[np.int64] | None]]:
        """Codes of all rows in the columns that are used, some at a time, and how often each counts (None: once)."""
        for _, piece in self.source.read([str(column.name) for column in self.columns], ROWS, BYTES):
            codes = [_codes(column, piece.column(str(column.name))) for column in self.columns]
            yield codes[: len(self.job.counts)], None if self.units is None else self.units.times(codes[-1])


def _codes(column: Column, array: Any) -> npt.NDArray[Any]:
    """Rows of a column as the whole table numbers their values."""
    part = encode_part(column.name, array)
    number = number_in(column.name, part.values.labels, column.labels)
    return recode(part.codes, np.append(number, len(column.labels)))
