"""Tables of Polars, and columns of Polars that replace other columns. It is imported only for tables of Polars."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from ..encoding.plain_values import family
from ..errors import ColumnTypeError, InputError
from ..rows.threads import Workers
from .arrow_frame import arrow_table
from .base import Frame
from .replacement import Replacement, categories_of


class PolarsFrame(Frame):
    """A Polars DataFrame, or a LazyFrame, which is collected."""

    def __init__(self, table: Any) -> None:
        if isinstance(table, pl.LazyFrame):
            table = table.collect()
        if not isinstance(table, pl.DataFrame):
            raise InputError(f"table: expected a Polars DataFrame or LazyFrame, got {type(table).__qualname__}.")
        self._table = table
        self.names = list(table.columns)
        self.rows = table.height

    def column(self, position: int) -> Any:
        """See `Frame`; raises ColumnTypeError for a type that Arrow does not know."""
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
        return {
            name: kind.categories.to_list() for name, kind in self._table.schema.items() if isinstance(kind, pl.Enum)
        }

    def wrap(self, values: npt.NDArray[Any], names: Sequence[Hashable]) -> Any:
        return pl.DataFrame(arrow_table(values, names))

    def view(self, scores: Any) -> Any:
        """See `Frame`. A DataFrame of Polars is returned as it is: nearly all its methods return a new DataFrame."""
        return scores

    def series(self, values: Any, name: str) -> Any:
        return pl.Series(name, values)

    def named(self, columns: Mapping[str, Any]) -> Any:
        return pl.DataFrame(dict(columns))

    def replaced(
        self, names: Sequence[Hashable], columns: Mapping[Hashable, Replacement], kept: Any | None = None
    ) -> Any:
        def column_of(name: Hashable) -> pl.Series:
            column = self._table.get_column(str(name))
            if name in columns:
                return other_column(columns[name], column)
            return without_unused(column if kept is None else column.filter(pl.Series(kept)))

        with Workers() as workers:
            series = workers.run(column_of, [(name,) for name in names])
        return pl.DataFrame(series)

    def arrow(self) -> pa.Table:
        return self._table.to_arrow(compat_level=pl.CompatLevel.oldest())


def other_column(column: Replacement, like: pl.Series) -> pl.Series:
    """Return the column as a series. like: the column that it replaces.

    All columns of a process share the categories of Polars: the new column would show the categories of the old column.
    So the new column is an Enum, which has its own categories.
    """
    kind = column.labels.type
    same = pa.types.is_null(kind) or family(kind) == family(column.before)
    categorical = like.dtype in (pl.Categorical, pl.Enum)
    if family(kind) == "text" and (categorical or not same):
        order = like.dtype.categories.to_list() if isinstance(like.dtype, pl.Enum) else None
        categories = categories_of(column, order)
        return _enum(like.name, categories.values.to_pylist(), categories.numbers)
    values = pl.Series(like.name, pl.from_arrow(column.labels))
    if same and not categorical:
        # Values that do not fit into the old type keep their own.
        fitting = values.cast(like.dtype, strict=False)
        values = values if fitting.null_count() > values.null_count() else fitting
    return _taken(values, column)


def without_unused(column: pl.Series) -> pl.Series:
    """Return a column of categories as an Enum of the categories that occur, see `other_column`.

    Any other column is returned as it is.
    """
    if column.dtype not in (pl.Categorical, pl.Enum):
        return column
    used = column.drop_nulls().unique()
    order = column.dtype.categories if isinstance(column.dtype, pl.Enum) else used.cast(pl.String).sort()
    return column.cast(pl.String).cast(pl.Enum(order.filter(order.is_in(used.cast(pl.String).implode()))))


def _enum(name: str, categories: Sequence[str], numbers: npt.NDArray[Any]) -> pl.Series:
    """Return an Enum. numbers: for each row the number of its category, of a signed type; -1 for a missing value."""
    unsigned = numbers.view(f"u{numbers.itemsize}")
    absent = numbers < 0
    series = pl.Series(name, pl.from_arrow(pa.array(unsigned, mask=absent)) if absent.any() else unsigned)
    return _from_numbers(series, pl.Enum(categories))


def dictionary_of(series: pl.Series) -> pa.Array | None:
    """Return a column of categories as Arrow data without renumbering; None if Polars does not give the numbers."""
    numbers = series.to_physical()
    if isinstance(series.dtype, pl.Enum):
        return pa.DictionaryArray.from_arrays(numbers.to_arrow(), series.dtype.categories.to_arrow(), safe=False)
    # Older versions number the categories of each column anew, and have no way to ask for the numbers.
    highest = numbers.max() if hasattr(pl, "Categories") else None
    if not isinstance(highest, int) or highest >= len(series):
        return None
    every = _from_numbers(pl.Series(np.arange(highest + 1)).cast(numbers.dtype), series.dtype)
    return pa.DictionaryArray.from_arrays(numbers.to_arrow(), every.cast(pl.String).to_arrow(), safe=False)


def _from_numbers(numbers: pl.Series, kind: Any) -> pl.Series:
    """Return categories of the type `kind` by their numbers."""
    # Polars 2 has another method for it.
    return numbers.cat.to(kind) if hasattr(numbers.cat, "to") else numbers.cast(kind)


def _taken(values: pl.Series, column: Replacement) -> pl.Series:
    """Return for each row of a column the value of its label. values: a value for each label."""
    if (values.dtype.is_integer() or values.dtype.is_float()) and not values.null_count() and len(values):
        array, absent = values.to_numpy(), column.missing
        # Rows without a value may have any number, since they are masked.
        numbers = column.taken(np.append(array, array[:1]))
        series = pl.from_arrow(pa.array(numbers, mask=absent)) if absent.any() else pl.Series(numbers)
        return series.cast(values.dtype).alias(values.name)  # type: ignore[union-attr]
    # The last place, `len(labels)`, is the place of a missing value.
    return values.extend_constant(None, 1).gather(column.row_places(np.uint32)).alias(values.name)
