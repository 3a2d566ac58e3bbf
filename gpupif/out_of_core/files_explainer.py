"""The cohorts of cells of a table in files, as an attacker sees them; the files are read again for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..attack.attackers import KnownSubsets
from ..attack.weights import Units
from ..encoding.column import Column
from ..encoding.merge import encode_part, number_in, recode
from ..engines.base import Engine, Job
from ..io.base import Source
from ..measures import Measure
from ..results.backing import RowExplainer, RowValues
from ..results.cell_explanations import ExplainedCells, weights_of_sets
from ..results.riskiest import RiskyCell
from ..rows.distinct import collapse
from ..rows.threads import Workers
from .chunk_readers import RowReader

# Rows and bytes that are read at once.
ROWS, BYTES = 1 << 18, 1 << 26


@dataclass(eq=False)
class FilesExplainer(RowExplainer):
    """The cohorts of cells, as one attacker sees them.

    source: Source. The files.
    columns: list of Column. The scored or known columns, and last the column of weights if there are `units`; without
    codes of rows.
    job: Job. The attacker's job, without codes of rows.
    units: Units. The sampling weights; None without weights.
    subsets: KnownSubsets. The sets of columns that the attacker may know, else None. If there are sets, the distinct
    rows have to fit into memory, as they did for scoring.
    engine: Engine. The engine that weighs sets of columns.
    """

    source: Source
    columns: Sequence[Column]
    job: Job
    units: Units | None
    subsets: KnownSubsets | None
    engine: Engine

    def labels(self, rows: Sequence[int]) -> list[Any] | None:
        """Return None: rows of files have no labels."""
        return None

    def row_values(self) -> RowValues:
        """Return the values of rows, see `RowExplainer`; raise TableReadError if a file has changed."""
        scored_columns = self.job.scored_columns
        rows = RowReader[list[npt.NDArray[Any]]](
            (codes for codes, _ in self._chunks()),
            0,
            lambda codes: len(codes[0]),
            lambda codes, some: [column[some] for column in codes],
        )

        def between(start: int, stop: int) -> Callable[[int], npt.NDArray[Any]]:
            chunks = list(rows.between(start, stop))
            return lambda scored_column: np.concatenate([codes[scored_columns[scored_column]] for codes in chunks])

        return RowValues([self.columns[scored_column] for scored_column in scored_columns], between)

    def values(self, cells: Sequence[RiskyCell]) -> list[dict[str, Any]]:
        """Return the values of cells, see `Explainer`; raise TableReadError if a file has changed."""
        return self._asked(cells).values()

    def explain(self, cells: Sequence[RiskyCell], by: Measure) -> list[dict[str, Any]]:
        """Return the cohorts of cells, see `Explainer`; raise TableReadError if a file has changed."""
        asked, subsets = self._asked(cells), self.subsets
        if subsets is None:
            return asked.explain(asked.total(*(asked.count(*chunk) for chunk in self._chunks())))
        weights_of = partial(weights_of_sets, self.engine, subsets)
        return asked.explain_worst(self._distinct_rows(), subsets, weights_of, by)

    def _distinct_rows(self) -> Job:
        """Return the job with the codes of all distinct rows."""
        layout = self.job.layout

        def rows_of_chunks(workers: Workers) -> Iterator[list[npt.NDArray[Any]]]:
            for codes, units in self._chunks():
                ones = np.ones(len(codes[0]), np.int64)
                yield [layout.pack(codes, workers), ones, ones if units is None else units]

        with Workers() as workers:
            rows = collapse(rows_of_chunks(workers), layout.words, 2, workers, ROWS)
        row_counts, multiplicities = rows.sums
        return replace(self.job, codes=layout.unpack(rows.keys), multiplicities=multiplicities, row_counts=row_counts)

    def _asked(self, cells: Sequence[RiskyCell]) -> ExplainedCells:
        keys = self._keys(cells)
        return ExplainedCells(self.job, self.columns, cells, [keys[cell.row] for cell in cells])

    def _keys(self, cells: Sequence[RiskyCell]) -> dict[int, list[int]]:
        """Return the codes of the rows of cells, by row number."""
        wanted = sorted({cell.row for cell in cells})
        keys: dict[int, list[int]] = {}
        start = 0
        for codes, _ in self._chunks():
            size = len(codes[0])
            for row in wanted[len(keys) :]:
                if row >= start + size:
                    break
                keys[row] = [int(column[row - start]) for column in codes]
            start += size
            if len(keys) == len(wanted):
                break
        return keys

    def _chunks(self) -> Iterator[tuple[list[npt.NDArray[Any]], npt.NDArray[np.int64] | None]]:
        """Yield chunks of all rows: the codes in the used columns, and how often each row counts (None: once)."""
        for _, chunk in self.source.read([str(column.name) for column in self.columns], ROWS, BYTES):
            codes = [_codes(column, chunk.column(str(column.name))) for column in self.columns]
            yield codes[: len(self.job.counts)], None if self.units is None else self.units.multiplicities(codes[-1])


def _codes(column: Column, array: Any) -> npt.NDArray[Any]:
    """Return the codes of a column's rows as the whole table has them."""
    part = encode_part(column.name, array)
    number = number_in(column.name, part.values.labels, column.labels)
    return recode(part.codes, np.append(number, len(column.labels)))
