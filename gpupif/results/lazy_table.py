"""Tables that are read only when they are asked to be: batch by batch, by whatever library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa


class LazyTable(ABC):
    """Rows that come in batches of one schema; a subclass says where from.

    Anything that takes Arrow's stream of batches (Polars, DuckDB, pyarrow, pandas 2.2 and later, `gpupif.score`) takes
    it as it is.
    """

    _schema: pa.Schema

    def __repr__(self) -> str:
        kinds = ", ".join(f"{field.name} {field.type}" for field in self._schema)
        return f"<{type(self).__name__} of {self._what()}: {kinds}; read by head, to_pandas, to_polars, to_arrow>"

    @abstractmethod
    def _what(self) -> str:
        """What it has, in words."""

    @abstractmethod
    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in order, some at a time."""

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
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's stream of all batches."""
        reader = pa.RecordBatchReader.from_batches(self._schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)
