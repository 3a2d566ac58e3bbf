"""What an attacker sees of cells of a table in files, which is read again for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..encoding.merge import encode_part, number_in, recode
from ..engines.block_scoring import pack_keys, unpack_keys
from ..results.base import Cell, Explainer
from ..results.riskiest import CohortCount, count_cohort, describe, describe_value
from ..results.worst_attacker import describe_worst, row_with, weights_of_sets
from ..rows.accumulate import DistinctRows
from ..rows.keys import KeyLayout
from ..rows.threads import Workers

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..attack.known_subsets import KnownSubsets
    from ..attack.weights import Units
    from ..encoding.column import Column
    from ..engines.base import Engine, Job
    from ..io.base import Source
    from ..measures import Measure

# What is read at once.
ROWS, BYTES = 1 << 18, 1 << 26


class FilesExplainer(Explainer):
    """What one attacker sees of cells.

    columns: that are scored or known, and last that of the weights, if there are `units` of them; without codes of
    rows, as those of job. subsets: where the attacker knows any few columns; then the distinct rows have to fit into
    memory, as when they were scored.
    """

    def __init__(
        self,
        source: Source,
        columns: Sequence[Column],
        job: Job,
        units: Units | None,
        subsets: KnownSubsets | None,
        engine: Engine,
    ) -> None:
        self._source = source
        self._columns = columns
        self._job = job
        self._units = units
        self._subsets = subsets
        self._engine = engine

    def labels(self, rows: Sequence[int]) -> list[Any] | None:
        """See `Explainer`: files have none."""
        return None

    def values(self, cells: Sequence[Cell]) -> list[dict[str, Any]]:
        """See `Explainer`; raises TableReadError where a file is not what it was."""
        keys, found = self._keys(cells), []
        for cell in cells:
            position = self._job.targets[cell.target]
            found.append(describe_value(self._job, position, self._columns[position], keys[cell.row][position]))
        return found

    def explain(self, cells: Sequence[Cell], by: Measure) -> list[dict[str, Any]]:
        """See `Explainer`; raises as `values`."""
        keys = self._keys(cells)
        if self._subsets is not None:
            return self._explain_any_known(cells, keys, by, self._subsets)
        job, targets = self._job, [self._job.targets[cell.target] for cell in cells]
        counts: list[list[CohortCount]] = [[] for _ in cells]
        for codes, times in self._pieces():
            for cell, target, found in zip(cells, targets, counts, strict=True):
                found.append(count_cohort(job, codes, times, keys[cell.row], target))
        return [
            describe(job, target, self._columns[target], keys[cell.row][target], CohortCount.total(found))
            for cell, target, found in zip(cells, targets, counts, strict=True)
        ]

    def _explain_any_known(
        self, cells: Sequence[Cell], keys: dict[int, list[int]], by: Measure, subsets: KnownSubsets
    ) -> list[dict[str, Any]]:
        layout = KeyLayout.of([len(counts) for counts in self._job.counts])
        with Workers() as workers:
            rows = DistinctRows(layout.words, 1, workers)
            for codes, times in self._pieces():
                amounts = np.ones(len(codes[0]), np.int64) if times is None else times
                rows.add(pack_keys(codes, layout, workers), amounts)
        table = replace(self._job, codes=unpack_keys(rows.keys, layout), times=rows.sums[0])
        found = []
        for cell in cells:
            position, row = table.targets[cell.target], row_with(table.codes, keys[cell.row])
            weights = weights_of_sets(self._engine, table, position, subsets) if by.weighted else np.ones(0)
            found.append(describe_worst(table, self._columns[position], row, position, subsets, weights, by))
        return found

    def _keys(self, cells: Sequence[Cell]) -> dict[int, list[int]]:
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
        for _, piece in self._source.read([str(column.name) for column in self._columns], ROWS, BYTES):
            codes = [_codes(column, piece.column(str(column.name))) for column in self._columns]
            yield codes[: len(self._job.counts)], None if self._units is None else self._units.times(codes[-1])


def _codes(column: Column, array: Any) -> npt.NDArray[Any]:
    """Rows of a column as the whole table numbers their values."""
    part = encode_part(column.name, array)
    number = number_in(column.name, part.values.labels, column.labels)
    return recode(part.codes, np.append(number, len(column.labels)))
