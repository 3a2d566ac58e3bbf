"""Cells that were asked for in place of all, as a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..io.write import check_output
from ..utils.display import as_text
from ..utils.validation import check_path
from .base import CellSource, ScoresDescription, refuse_options
from .lazy_table import LazyTable


class CellTable(LazyTable):
    """Cells of a table, one row each; made by `Scores.cells`.

    Columns: row (position in the table, from 0), column, value (as text, as `Priors.to_frame` has it; None where it is
    missing; left out where the table is not at hand), and every score, named <measure>, <measure>_worst,
    <attacker>_<measure> and so on: as the columns of score files, but for the column. Behind them the index of a pandas
    table, as pandas stores it, where it is more than row numbers.

    Nothing is found before it is asked for, and then anew each time. Anything that takes Arrow's stream of batches
    (Polars, DuckDB, pyarrow, pandas 2.2 and later) takes it as it is.
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
        """How many cells there are: where nothing says so, all are found."""
        return self._source.count()

    def write(self, path: str | os.PathLike[str], overwrite: bool = True, **options: Any) -> int:
        """Write the cells to a Parquet, CSV or Feather file, by its ending, whole or not at all; how many there are.

        Of scores of a Dask frame to a folder of Parquet files, which the workers write. The files say what they are of,
        as score files do: `open_scores` opens them again. overwrite: replace a file that exists, or a folder that
        holds nothing but what gpupif wrote. options: as of `Scores.to_parquet`, of a Dask frame only. Raises
        OutputError where they cannot be written, and InputError for other options.
        """
        check_path("path", path, "a file or folder to write")
        if not self._source.writes_folders:
            check_output(path, overwrite, self._inputs())
            refuse_options(options, "write")
        return self._source.write(path, overwrite, self._describe, options)
