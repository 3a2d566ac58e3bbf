"""Cells in place of all scores, as a table with one row for each cell, and the ways to find, lay out and write it."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..encoding.column import Column
from ..errors import OutputError
from ..io.write import check_output, write_tables
from ..rows.threads import Workers
from ..utils.display import as_text
from ..utils.validation import check_path
from .backing import CellSource, ScoresDescription, refuse_options
from .cell_selection import CellQuery, ScoredRows
from .lazy_tables import LazyTable
from .provenance import to_metadata
from .riskiest import CellBatch

# The cells of one table. The names and values of cells are texts, so a cell takes far more memory than a score.
TABLE_CELLS = 1 << 17

ROW, COLUMN, VALUE = "row", "column", "value"


class CellTable(LazyTable):
    """Cells of a table, one row each; made by `Scores.cells`.

    Columns: row (position in the table, from 0), column, value (as text, as `Priors.to_frame` has it; None if it is
    missing; left out if the table is not at hand), and every score, named <measure>, <measure>_worst,
    <attacker>_<measure> and so on: as the columns of score files, without the name of the column. After them comes the
    index of a pandas table, as pandas stores it, unless it is just row numbers.

    Nothing is computed before it is requested, and then anew each time. Any library that takes Arrow's stream of
    batches (Polars, DuckDB, pyarrow, pandas 2.2 and later) takes a `CellTable` without conversion.
    """

    def __init__(
        self, source: CellSource, describe: Callable[[bool], ScoresDescription], inputs: Callable[[], list[Path]]
    ) -> None:
        self._source = source
        self._describe = describe
        self._inputs = inputs
        self.columns = list(source.columns)

    def __repr__(self) -> str:
        return f"<CellTable of {', '.join(map(as_text, self.columns))}; read by head, to_pandas, to_polars, to_arrow>"

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        for table in self._source.tables():
            yield from table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]

    def count(self) -> int:
        """Return how many cells there are; unless a file says so, all of them are found for it."""
        return self._source.count()

    def write(self, path: str | os.PathLike[str], overwrite: bool = True, **options: Any) -> int:
        """Write the cells to a Parquet, CSV or Feather file, by its ending, whole or not at all; return their number.

        Cells of a Dask frame are written to a folder of Parquet files, by the workers. The files describe themselves,
        as score files do: `open_scores` opens them again. overwrite: replace a file that exists, or a folder that holds
        nothing but files written by gpupif. options: see `Scores.to_parquet`, for a Dask frame only. Raises OutputError
        if the cells cannot be written, and InputError for other options.
        """
        check_path("path", path, "a file or folder to write")
        if self._source.writes_folders:
            return self._source.write(path, overwrite, self._describe, options)
        check_output(path, overwrite, self._inputs())
        refuse_options(options, "write")
        written: list[int] = []
        write_tables(self._source.tables(), path, written.append, overwrite, lambda: to_metadata(self._describe(True)))
        return sum(written)


def check_labels(names: Iterable[Hashable], scores: Iterable[str]) -> None:
    """Raise OutputError if the index of a table is named like another column of its cells. scores: their names."""
    taken = {ROW, COLUMN, VALUE, *scores}
    for name in names:
        if name in taken:
            raise OutputError(f"output: two columns would be called {name!r}. Rename the index of the table.")


@dataclass(frozen=True)
class CellLayout:
    """The columns of a table of cells.

    columns: names of the scored columns.
    scores: type of each column of scores, by its name.
    values: the texts of the values of all scored columns, one column after the other, and the place at which each
    column begins; None if the table is not at hand.
    labels: the index of the table, as pandas stores it, unless it is just row numbers.
    """

    columns: Sequence[Hashable]
    scores: Mapping[str, str]
    values: tuple[pa.Array, Sequence[int]] | None
    labels: pa.Table | None = None

    @classmethod
    def for_columns(
        cls,
        columns: Sequence[Hashable],
        scores: Mapping[str, str],
        encoded: Sequence[Column] | None,
        labels: pa.Table | None = None,
    ) -> CellLayout:
        """Return the layout of cells. encoded: the scored columns with their values; None if the table is not at hand.

        Raises OutputError if two columns would have the same name.
        """
        check_labels([] if labels is None else labels.column_names, scores)
        if encoded is None:
            return cls(columns, scores, None, labels)
        texts = [pa.array(column.texts(), pa.large_string()) for column in encoded]
        starts = np.cumsum([0, *map(len, texts[:-1])]).tolist()
        return cls(columns, scores, (pa.chunked_array(texts, pa.large_string()).combine_chunks(), starts), labels)

    @property
    def names(self) -> list[str]:
        """The names of the columns, without those of the index."""
        return [ROW, COLUMN, *([] if self.values is None else [VALUE]), *self.scores]

    @property
    def schema(self) -> pa.Schema:
        """The schema of the tables."""
        fields = [(ROW, pa.int64()), (COLUMN, pa.string()), *([] if self.values is None else [(VALUE, pa.string())])]
        fields += [(name, pa.from_numpy_dtype(np.dtype(kind))) for name, kind in self.scores.items()]
        if self.labels is None:
            return pa.schema(fields)
        return pa.schema([*fields, *self.labels.schema], self.labels.schema.metadata)

    def table(self, cells: CellBatch) -> pa.Table:
        """Return cells as a table."""
        names = pa.array([str(name) for name in self.columns], pa.string())
        columns = [pa.array(cells.rows, pa.int64()), names.take(pa.array(cells.scored_columns))]
        if self.values is not None and cells.codes is not None:
            texts, starts = self.values
            columns.append(texts.take(pa.array(np.array(starts)[cells.scored_columns] + cells.codes)).cast(pa.string()))
        columns += map(pa.array, cells.scores)
        if self.labels is not None:
            columns += self.labels.take(pa.array(cells.rows)).columns
        return pa.table(columns, schema=self.schema)

    def tables(self, batches: Iterable[CellBatch]) -> Iterator[pa.Table]:
        """Return cells as tables of many rows each, but for the last; at least one table, perhaps without rows."""
        waiting = [self.schema.empty_table()]
        for cells in batches:
            for start in range(0, len(cells.rows), TABLE_CELLS):
                waiting.append(self.table(cells.take(slice(start, start + TABLE_CELLS))))
                if sum(map(len, waiting)) >= TABLE_CELLS:
                    yield pa.concat_tables(waiting).combine_chunks()
                    waiting = []
        if waiting:
            yield pa.concat_tables(waiting).combine_chunks()


@dataclass(eq=False)
class LocalCellSource(CellSource):
    """Cells of scores that this process reads, in memory or in files.

    rows: returns the scores of the outputs with these names, chunk by chunk.
    """

    query: CellQuery
    layout: CellLayout
    rows: Callable[[Sequence[str]], Iterator[ScoredRows]]

    def __post_init__(self) -> None:
        self.columns = self.layout.names

    def tables(self) -> Iterator[pa.Table]:
        chunks = (chunk for rows in self.rows(self.query.outputs) for chunk in rows.chunks())
        with Workers() as workers:
            yield from self.layout.tables(self.query.search(chunks, workers))
