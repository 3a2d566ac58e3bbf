"""Scores in files."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import InputError
from ..io.write import output_names, write_tables
from ..rows.threads import Workers
from ..utils.exact_sums import sum_rows
from ..utils.percentiles import ONCE, SHIFTS, DigitCounts, PercentileSearch
from .base import CellSource, QueryResult, RiskyCell, ScoreQuery, WriteRequest
from .cell_layout import CellLayout
from .distribution import ColumnAnswer, ColumnQuery, Tally
from .figures import Figures
from .local_cell_source import LocalCellSource
from .outputs import CellScore, ScoreView, outputs_of
from .pieces import Piece, QuerySearch, by_column
from .provenance import to_metadata
from .selection import CellQuery, ScoredRows
from .stored_base import StoredBacking
from .stored_frame import StoredFrame

# Columns whose percentiles are found at once: each takes up to 2 MiB of counts.
COLUMNS_AT_ONCE = 16


class FileBacking(StoredBacking):
    """Scores of all cells in files."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._types = ScoreView(self.about.measures, tuple(self.attackers), self.about.dtype).types()

    def frame(self, score: CellScore) -> StoredFrame:
        return self._frame({"": score}, list(self.about.columns))

    def cells(self, query: CellQuery) -> CellSource:
        encoded = self.row_values()
        layout = CellLayout.of(self.about.columns, query.types, None if encoded is None else encoded.columns)

        def rows(outputs: Sequence[str]) -> Iterator[ScoredRows]:
            values, start = self.row_values(), 0
            for arrays in self._pieces(outputs):
                stop = start + next(iter(arrays.values())).shape[1]
                yield ScoredRows(start, arrays, None if values is None else values.between(start, stop))
                start = stop

        return LocalCellSource(query, layout, rows)

    def joined(self, outputs: Mapping[str, CellScore]) -> StoredFrame:
        return self._frame(outputs, output_names(list(outputs), self.about.columns, []))

    def _frame(self, outputs: Mapping[str, CellScore], names: Sequence[Hashable]) -> StoredFrame:
        several = list(outputs.values())
        read = outputs_of(several)

        def columns() -> Iterator[list[Any]]:
            for arrays in self._pieces(read):
                yield [column for score in several for column in score.of(arrays)]

        nothing = {output: np.empty((0, 0), self._types[output]) for output in read}
        types = [score.of(nothing).dtype for score in several for _ in self.about.columns]
        return StoredFrame(columns, names, types)

    def array(self, score: CellScore) -> npt.NDArray[Any]:
        return np.concatenate([score.of(arrays) for arrays in self._pieces(score.outputs)], axis=1)

    def row_sums(self, score: CellScore, name: str) -> StoredFrame:
        def sums() -> Iterator[list[Any]]:
            for arrays in self._pieces(score.outputs):
                yield [sum_rows(score.of(arrays))]

        return StoredFrame(sums, [name], ["float64"])

    def find(self, query: ScoreQuery) -> QueryResult:
        """See `Backing`; the files are read once, and four times more for percentiles of some columns at once."""
        figures, top = self._look(query) if query.figures or query.by else (Figures({}), [])
        columns, every = {}, range(len(self.about.columns))
        for score, asked in query.of_columns.items():
            columns[score] = self._answers(score, asked, every)
        of_rows: list[float] = []
        if query.gains is not None:
            (of_rows,) = self._percentiles(query.gains, query.of_rows, every, by_row=True)
        return QueryResult(figures, columns, of_rows, top)

    def _look(self, query: ScoreQuery) -> tuple[Figures, list[RiskyCell]]:
        """Figures and the riskiest cells."""
        search = QuerySearch(replace(query, of_columns={}, gains=None))
        found: list[Piece] = []
        row = 0
        with Workers() as workers:
            for arrays in self._pieces(outputs_of(search.query.looked_at)):
                columns = by_column(arrays)
                found.append(Piece(workers.run(search.look, [(own, k, row) for k, own in enumerate(columns)]), None))
                row += next(iter(arrays.values())).shape[1]
        figures, top = search.seen(found)
        return figures, self._with_scores(top, query.shown)

    def _with_scores(self, top: Sequence[RiskyCell], shown: Sequence[CellScore]) -> list[RiskyCell]:
        """Cells with scores, which are read for their rows only."""
        if not top:
            return []
        rows = sorted({cell.row for cell in top})
        read = outputs_of(shown)
        names = [f"{output}_{column}" for output in read for column in self.about.columns]
        with self._reading():
            table = self._dataset().take(pa.array(rows), columns=names).combine_chunks()
        arrays = self._arrays(table, read, range(len(self.about.columns)))
        scores = [score.of(arrays) for score in shown]
        return [
            cell._replace(scores=[array[cell.scored_column, rows.index(cell.row)].item() for array in scores])
            for cell in top
        ]

    def _answers(self, score: CellScore, asked: ColumnQuery, columns: Sequence[int]) -> list[ColumnAnswer]:
        """What is asked of the scores of each column."""
        tallies = [Tally((0,) * len(asked.above)) for _ in columns]
        for arrays in self._pieces(score.outputs) if asked.tallied else ():
            found = [Tally.of(numbers, ONCE, asked) for numbers in score.of(arrays)]
            tallies = [Tally.total(both) for both in zip(tallies, found, strict=True)]
        shares: list[list[float]] = []
        for first in columns[::COLUMNS_AT_ONCE] if asked.percentiles else ():
            some = columns[first : first + COLUMNS_AT_ONCE]
            shares += self._percentiles(score, asked.percentiles, some, by_row=False)
        shares = shares or [[] for _ in columns]
        return [tally.answer(asked, own) for tally, own in zip(tallies, shares, strict=True)]

    def _percentiles(
        self, score: CellScore, wanted: Sequence[float], columns: Sequence[int], by_row: bool
    ) -> list[list[float]]:
        """Percentiles of some columns, or of the sums of their rows."""
        searches = [PercentileSearch.of(wanted)] * (1 if by_row else len(columns))
        for _ in SHIFTS:
            counts: list[DigitCounts] = [{} for _ in searches]
            for arrays in self._pieces(score.outputs, columns):
                scores = score.of(arrays)
                numbers = [sum_rows(scores)] if by_row else scores
                for search, found, one in zip(searches, counts, numbers, strict=True):
                    search.count(one, ONCE, found)
            searches = [search.narrowed(found) for search, found in zip(searches, counts, strict=True)]
        return [search.found() for search in searches]

    def _pieces(
        self, outputs: Sequence[str], columns: Sequence[int] | None = None
    ) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Scores (columns, rows) by output, of some scored columns, some rows at a time, in order."""
        places = range(len(self.about.columns)) if columns is None else columns
        names = [f"{output}_{self.about.columns[place]}" for output in outputs for place in places]
        for batch in self._batches(names):
            if batch.num_rows:
                yield self._arrays(batch, outputs, places)

    def _arrays(self, batch: Any, outputs: Sequence[str], columns: Sequence[int]) -> dict[str, npt.NDArray[Any]]:
        """The columns of a batch, those of each output side by side."""
        arrays = {}
        for number, output in enumerate(outputs):
            array = np.empty((len(columns), batch.num_rows), self._types[output])
            for place in range(len(columns)):
                array[place] = batch.column(number * len(columns) + place).to_numpy(zero_copy_only=False)
            arrays[output] = array
        return arrays

    def _column_types(self) -> dict[str, pa.DataType]:
        return {
            f"{output}_{column}": pa.from_numpy_dtype(np.dtype(kind))
            for output, kind in self._types.items()
            for column in self.about.columns
        }

    def to_arrow(self, outputs: Mapping[str, CellScore], keep_input: bool) -> pa.Table:
        return pa.concat_tables(self._tables(outputs, keep_input))

    def write(self, writing: WriteRequest) -> None:
        tables = self._tables(writing.outputs, writing.keep_input)
        write_tables(tables, writing.path, writing.done, writing.overwrite, lambda: to_metadata(writing.describe(True)))

    def _tables(self, outputs: Mapping[str, CellScore], keep_input: bool) -> Iterator[pa.Table]:
        """The columns of the table, if they are kept, and the scores, some rows at a time."""
        own = {f"{output}_{column}" for output in self._types for column in self.about.columns}
        with self._reading():
            beside = [name for name in self._dataset().schema.names if name not in own] if keep_input else []
        if keep_input and not beside:
            raise InputError(f"keep_input: {self.path} holds scores alone. Leave it out, or score with keep_input.")
        names = output_names(list(outputs), self.about.columns, beside)
        read = outputs_of(outputs.values())
        stored = [f"{output}_{column}" for output in read for column in self.about.columns]
        for batch in self._batches([*stored, *beside]):
            arrays = self._arrays(batch, read, range(len(self.about.columns)))
            scores = [pa.array(column) for score in outputs.values() for column in score.of(arrays)]
            yield pa.table([*(batch.column(name) for name in beside), *scores], names=[*beside, *names])
