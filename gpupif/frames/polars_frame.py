"""Tables of Polars."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import ColumnTypeError, InputError
from ..rows.threads import Workers
from .arrow_frame import arrow_table
from .base import Frame
from .replacement import Replacement

if TYPE_CHECKING:
    import numpy.typing as npt


class PolarsFrame(Frame):
    """A Polars DataFrame, or what a LazyFrame collects to."""

    def __init__(self, table: Any) -> None:
        import polars as pl

        if isinstance(table, pl.LazyFrame):
            table = table.collect()
        if not isinstance(table, pl.DataFrame):
            raise InputError(f"table: expected a Polars DataFrame or LazyFrame, got {type(table).__qualname__}.")
        self._table = table
        self.names = list(table.columns)
        self.rows = table.height

    def column(self, position: int) -> Any:
        """See `Frame`; raises ColumnTypeError for a type that Arrow does not know."""
        import polars as pl

        from .polars_columns import dictionary_of

        series = self._table.get_columns()[position]
        try:
            if series.dtype == pl.Object:
                raise pa.ArrowInvalid("objects")
            array = dictionary_of(series) if isinstance(series.dtype, pl.Categorical | pl.Enum) else None
            if array is None:
                array = series.to_arrow(compat_level=pl.CompatLevel.oldest())
        except pa.ArrowException as error:
            raise ColumnTypeError(series.name, f"Polars type {series.dtype}") from error
        return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])

    def orders(self) -> dict[Hashable, list[Any]]:
        import polars as pl

        return {
            name: kind.categories.to_list() for name, kind in self._table.schema.items() if isinstance(kind, pl.Enum)
        }

    def wrap(self, values: npt.NDArray[Any], names: Sequence[Hashable]) -> Any:
        import polars as pl

        return pl.DataFrame(arrow_table(values, names))

    def view(self, scores: Any) -> Any:
        """See `Frame`; frames of Polars are never changed."""
        return scores

    def series(self, values: Any, name: str) -> Any:
        import polars as pl

        return pl.Series(name, values)

    def named(self, columns: Mapping[str, Any]) -> Any:
        import polars as pl

        return pl.DataFrame(dict(columns))

    def replaced(
        self, names: Sequence[Hashable], columns: Mapping[Hashable, Replacement], kept: Any | None = None
    ) -> Any:
        import polars as pl

        from .polars_columns import other_column, without_unused

        def made(name: Hashable) -> pl.Series:
            column = self._table.get_column(str(name))
            if name in columns:
                return other_column(columns[name], column)
            return without_unused(column if kept is None else column.filter(pl.Series(kept)))

        with Workers() as workers:
            series = workers.run(made, [(name,) for name in names])
        return pl.DataFrame(series)

    def arrow(self) -> pa.Table:
        import polars as pl

        return self._table.to_arrow(compat_level=pl.CompatLevel.oldest())
