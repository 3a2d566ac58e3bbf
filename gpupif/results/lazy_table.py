"""Tables that are read only when they are asked to be: batch by batch, by whatever library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from itertools import chain
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import InputError
from ..utils.validation import whole_number


class LazyTable(ABC):
    """Rows that come in batches; a subclass says where from. columns: their names."""

    columns: Sequence[Hashable]

    @abstractmethod
    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in order, some at a time; at least one batch."""

    def to_arrow(self) -> pa.Table:
        """All rows as a pyarrow Table."""
        return pa.Table.from_batches(self.to_batches())

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame."""
        return self._as_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """All rows as a Polars DataFrame. Raises InputError where Polars is not installed."""
        try:
            import polars as pl
        except ImportError:
            raise InputError(
                "to_polars: Polars is not installed: pip install 'gpupif[polars]', or use to_pandas() or to_arrow()."
            ) from None
        return pl.DataFrame(self.to_arrow())

    def head(self, n: int = 5) -> pd.DataFrame:
        """The first n rows as a pandas DataFrame; no more is read than they need. Raises InputError for n below 0."""
        n = whole_number("n", n, "rows", 0)
        found: list[pa.RecordBatch] = []
        rows = 0
        for batch in self.to_batches():
            found.append(batch.slice(0, n - rows))
            rows += found[-1].num_rows
            if rows >= n:
                break
        return self._as_pandas(pa.Table.from_batches(found))

    def _as_pandas(self, table: pa.Table) -> pd.DataFrame:
        frame: pd.DataFrame = table.to_pandas()
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's stream of all batches."""
        batches = self.to_batches()
        first = next(batches)
        reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
        return reader.__arrow_c_stream__(requested_schema)
