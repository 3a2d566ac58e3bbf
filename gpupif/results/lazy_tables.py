"""Tables that are read only on demand, batch by batch and by any library: the base class, and scores in files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import InputError
from ..utils.display import as_text, plural
from ..utils.validation import whole_number


class LazyTable(ABC):
    """Rows that come in batches; a subclass says where from. columns: the names of the columns."""

    columns: Sequence[Hashable]

    @abstractmethod
    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Return all rows, in order, in batches; at least one batch."""

    def to_arrow(self) -> pa.Table:
        """Return all rows as a pyarrow Table."""
        return pa.Table.from_batches(self.to_batches())

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows as a pandas DataFrame."""
        return self._as_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """Return all rows as a Polars DataFrame. Raises InputError if Polars is not installed."""
        try:
            import polars as pl
        except ImportError:
            raise InputError(
                "to_polars: Polars is not installed: pip install 'gpupif[polars]', or use to_pandas() or to_arrow()."
            ) from None
        return pl.DataFrame(self.to_arrow())

    def head(self, n: int = 5) -> pd.DataFrame:
        """Return the first n rows as a pandas DataFrame; only the batches that hold them are read.

        Raises InputError for n below 0.
        """
        n = whole_number("n", n, "rows", 0)
        first: list[pa.RecordBatch] = []
        rows = 0
        for batch in self.to_batches():
            first.append(batch.slice(0, n - rows))
            rows += first[-1].num_rows
            if rows >= n:
                break
        return self._as_pandas(pa.Table.from_batches(first))

    def _as_pandas(self, table: pa.Table) -> pd.DataFrame:
        frame: pd.DataFrame = table.to_pandas()
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return all batches as Arrow's stream."""
        batches = self.to_batches()
        first = next(batches)
        reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
        return reader.__arrow_c_stream__(requested_schema)


class StoredFrame(LazyTable):
    """Scores in files, rows in order: a view of the files, read column by column and in batches.

    columns: the scored columns of the table. Any library that takes Arrow's stream of batches (Polars, DuckDB, pyarrow,
    pandas 2.2 and later, `gpupif.score`) takes a `StoredFrame` without conversion.
    """

    def __init__(
        self, read: Callable[[], Iterator[Sequence[Any]]], columns: Sequence[Hashable], types: Sequence[str]
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
