"""Scores in files as a frame that reads nothing before it is asked to."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..utils.display import plural

# What `StoredFrame` reads at once, as the columns that it has.
Columns = Sequence[Any]


class StoredFrame:
    """Scores in files, rows in order: a view of them, read column by column and in batches.

    columns: the scored columns of the table. Anything that takes Arrow's stream of batches (Polars, DuckDB, pyarrow,
    pandas 2.2 and later, `gpupif.score`) takes it as it is.
    """

    def __init__(
        self, read: Callable[[], Iterator[Columns]], columns: Sequence[Hashable], types: Sequence[str]
    ) -> None:
        self.columns = list(columns)
        self._read = read
        self._schema = pa.schema(
            [(str(name), pa.from_numpy_dtype(np.dtype(kind))) for name, kind in zip(columns, types, strict=True)]
        )

    def __repr__(self) -> str:
        kinds = ", ".join(f"{field.name} {field.type}" for field in self._schema)
        columns = f"{len(self.columns)} {plural(len(self.columns), 'column')}"
        return f"<StoredFrame of {columns}: {kinds}; read by head, to_pandas, to_polars, to_arrow>"

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in order, some at a time."""
        for columns in self._read():
            yield pa.record_batch([pa.array(column) for column in columns], schema=self._schema)

    def to_arrow(self) -> pa.Table:
        """All rows as a pyarrow Table."""
        return pa.Table.from_batches(self.to_batches(), self._schema)

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame."""
        return self._as_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """All rows as a Polars DataFrame, where Polars is installed."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def head(self, n: int = 5) -> pd.DataFrame:
        """The first n rows as a pandas DataFrame; no more is read than they need."""
        found: list[pa.RecordBatch] = []
        rows = 0
        for batch in self.to_batches():
            found.append(batch.slice(0, n - rows))
            rows += found[-1].num_rows
            if rows >= n:
                break
        return self._as_pandas(pa.Table.from_batches(found, self._schema))

    def _as_pandas(self, table: pa.Table) -> pd.DataFrame:
        frame: pd.DataFrame = table.to_pandas()
        frame.columns = pd.Index(self.columns, tupleize_cols=False)
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's stream of all batches."""
        reader = pa.RecordBatchReader.from_batches(self._schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)
