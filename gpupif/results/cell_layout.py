"""How cells become a table, one row each: where a cell is, what it holds, and its scores."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..encoding.column import Column
from ..errors import OutputError
from ..utils.arrays import GROUP_ROWS
from .selection import CellBatch

ROW, COLUMN, VALUE = "row", "column", "value"


def check_labels(names: Iterable[Hashable], scores: Iterable[str]) -> None:
    """Raise OutputError for labels of rows that are called what another column is; scores: names of theirs."""
    taken = {ROW, COLUMN, VALUE, *scores}
    for name in names:
        if name in taken:
            raise OutputError(f"output: two columns would be called {name!r}. Rename the index of the table.")


@dataclass(frozen=True)
class CellLayout:
    """How cells become tables. columns: names of the scored ones. scores: types by name of the columns of scores.

    values: the texts of the values of all scored columns, one column's after the other's, and where those of each
    begin; None where the table is not at hand. labels: of the table's rows, as pandas stores them, where it has others
    than row numbers.
    """

    columns: Sequence[Hashable]
    scores: Mapping[str, str]
    values: tuple[pa.Array, Sequence[int]] | None
    labels: pa.Table | None = None

    @classmethod
    def of(
        cls,
        columns: Sequence[Hashable],
        scores: Mapping[str, str],
        encoded: Sequence[Column] | None,
        labels: pa.Table | None = None,
    ) -> CellLayout:
        """encoded: the scored columns with their values. Raises OutputError where two columns have the same name."""
        check_labels([] if labels is None else labels.column_names, scores)
        if encoded is None:
            return cls(columns, scores, None, labels)
        texts = [pa.array(column.texts(), pa.large_string()) for column in encoded]
        starts = np.cumsum([0, *map(len, texts[:-1])]).tolist()
        return cls(columns, scores, (pa.chunked_array(texts, pa.large_string()).combine_chunks(), starts), labels)

    @property
    def names(self) -> list[str]:
        """Of the columns, but for those of the labels."""
        return [ROW, COLUMN, *([] if self.values is None else [VALUE]), *self.scores]

    @property
    def schema(self) -> pa.Schema:
        """Of the tables."""
        fields = [(ROW, pa.int64()), (COLUMN, pa.string()), *([] if self.values is None else [(VALUE, pa.string())])]
        fields += [(name, pa.from_numpy_dtype(np.dtype(kind))) for name, kind in self.scores.items()]
        if self.labels is None:
            return pa.schema(fields)
        return pa.schema([*fields, *self.labels.schema], self.labels.schema.metadata)

    def table(self, cells: CellBatch) -> pa.Table:
        """Cells as a table."""
        names = pa.array([str(name) for name in self.columns], pa.string())
        columns = [pa.array(cells.rows, pa.int64()), names.take(pa.array(cells.scored_columns))]
        if self.values is not None and cells.codes is not None:
            texts, starts = self.values
            columns.append(texts.take(pa.array(np.array(starts)[cells.scored_columns] + cells.codes)).cast(pa.string()))
        columns += map(pa.array, cells.scores)
        if self.labels is not None:
            columns += self.labels.take(pa.array(cells.rows)).columns
        return pa.table(columns, schema=self.schema)

    def tables(self, found: Iterable[CellBatch]) -> Iterator[pa.Table]:
        """Cells as tables of many rows, but for the last; at least one, of no rows perhaps."""
        waiting = [self.schema.empty_table()]
        for cells in found:
            for start in range(0, len(cells.rows), GROUP_ROWS):
                waiting.append(self.table(cells.take(slice(start, start + GROUP_ROWS))))
                if sum(map(len, waiting)) >= GROUP_ROWS:
                    yield pa.concat_tables(waiting).combine_chunks()
                    waiting = []
        if waiting:
            yield pa.concat_tables(waiting).combine_chunks()
