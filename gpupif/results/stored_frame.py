"""Scores in files as a frame that reads nothing before it is asked to."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..utils.display import as_text, plural
from .lazy_table import LazyTable

# What `StoredFrame` reads at once, as the columns that it has.
Columns = Sequence[Any]


class StoredFrame(LazyTable):
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
        kinds = ", ".join(f"{as_text(field.name)} {as_text(field.type)}" for field in self._schema)
        columns = f"{len(self.columns)} {plural(len(self.columns), 'column')}"
        return f"<StoredFrame of {columns}: {kinds}; read by head, to_pandas, to_polars, to_arrow>"

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        for columns in self._read():
            yield pa.record_batch([pa.array(column) for column in columns], schema=self._schema)

    def _as_pandas(self, table: pa.Table) -> pd.DataFrame:
        frame = super()._as_pandas(table)
        frame.columns = pd.Index(self.columns, tupleize_cols=False)
        return frame
