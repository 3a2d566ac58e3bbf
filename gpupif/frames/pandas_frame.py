"""Tables of pandas, and columns of pandas that replace other columns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..encoding.plain_values import family, plain_type
from ..errors import OutputError
from ..rows.threads import Workers
from . import arrow_frame
from .base import Frame, category_orders
from .replacement import Replacement, categories_of


class PandasFrame(Frame):
    """A pandas DataFrame."""

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = table
        self.names = list(table.columns)
        self.rows = len(table)
        self.index = table.index

    def column(self, position: int) -> Any:
        return self._table.iloc[:, position]

    def orders(self) -> dict[Hashable, list[Any]]:
        return category_orders(self._table)

    def wrap(self, values: npt.NDArray[Any], names: Sequence[Hashable]) -> pd.DataFrame:
        columns = self._table.columns.take([self.names.index(name) for name in names])
        return pd.DataFrame(values.T, index=self.index, columns=columns, copy=False)

    def replaced(
        self, names: Sequence[Hashable], columns: Mapping[Hashable, Replacement], kept: Any | None = None
    ) -> pd.DataFrame:
        index = index_without_unused(self.index if kept is None else self.index[kept])
        places = [self.names.index(name) for name in names]

        def column_at(place: int) -> Any:
            name = self.names[place]
            if name in columns:
                return other_column(columns[name], self.column(place))
            column = self.column(place)
            return without_unused(column if kept is None else column[kept])

        with Workers() as workers:
            arrays = workers.run(column_at, [(place,) for place in places])
        series = {
            number: _indexed(array, index)
            if isinstance(array, pd.Series)
            else pd.Series(array, index=index, copy=False)
            for number, array in enumerate(arrays)
        }
        frame = pd.DataFrame(series, index=index, copy=False)
        frame.columns = self._table.columns.take(places)
        return frame

    def arrow(self) -> pa.Table:
        """See `Frame`; raises OutputError for a column that Arrow cannot hold."""
        columns = []
        for position, name in enumerate(self.names):
            series = self.column(position)
            if isinstance(series.dtype, pd.SparseDtype):
                series = pd.Series(series.to_numpy())
            try:
                columns.append(pa.array(series, from_pandas=True))
            except (pa.ArrowException, TypeError, OverflowError) as error:
                raise OutputError(
                    f"output: column {name!r} of the table, of type {series.dtype}, cannot be stored beside the scores "
                    f"({error}). Convert it, to text for instance, or write the scores alone."
                ) from error
        return pa.table(columns, names=[str(name) for name in self.names])


def _indexed(column: pd.Series[Any], index: pd.Index[Any]) -> pd.Series[Any]:
    """Return a column with another index, without copying values. In pandas 2, `set_axis` would copy them."""
    same = column.copy(deep=False)
    same.index = index
    return same


def other_column(column: Replacement, like: pd.Series[Any]) -> Any:
    """Return the column as an array of pandas or NumPy. like: the column that it replaces, or some of its rows."""
    dtype, kind = like.dtype, column.labels.type
    same = pa.types.is_null(kind) or family(kind) == family(column.before)
    if isinstance(dtype, pd.CategoricalDtype):
        return _categorical(column, dtype)
    if family(kind) == "text" and not same:
        return _categorical(column, None)
    if isinstance(dtype, np.dtype) and dtype.kind in "iuf" and same and len(column.labels):
        return _numbers(column, dtype)
    if same:
        return _taken(column, dtype, like)
    return _taken(column, _natural(column, dtype), like)


def without_unused(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column whose categories are those that occur, in their order."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        left = column.cat.remove_unused_categories()
        return column if len(left.cat.categories) == len(column.cat.categories) else left
    if isinstance(column.dtype, pd.ArrowDtype):
        given = pa.chunked_array(column.array.__arrow_array__())
        left = arrow_frame.without_unused(given)
        return column if left is given else pd.Series(pd.arrays.ArrowExtensionArray(left), index=column.index)
    return column


def index_without_unused(index: pd.Index[Any]) -> pd.Index[Any]:
    """Return row labels whose categories, or values of levels, are those that occur."""
    if isinstance(index, pd.MultiIndex):
        left = index.remove_unused_levels()
        levels: Any = [index_without_unused(level) for level in left.levels]
        return left.set_levels(levels)
    return index.remove_unused_categories() if isinstance(index, pd.CategoricalIndex) else index


def _categorical(column: Replacement, dtype: pd.CategoricalDtype | None) -> pd.Categorical:
    order = None if dtype is None else pa.array(dtype.categories, from_pandas=True)
    used = categories_of(column, order)
    categories: Any = pd.Index(used.values.to_pandas())
    if dtype is not None and used.ordered and len(categories):
        categories = dtype.categories[dtype.categories.get_indexer(categories)]
    ordered = bool(dtype is not None and dtype.ordered and used.ordered)
    kind = pd.CategoricalDtype(categories, ordered)
    return pd.Categorical.from_codes(used.numbers, dtype=kind, validate=False)


def _numbers(column: Replacement, dtype: np.dtype[Any]) -> Any:
    """Return numbers as an array of NumPy, of their old type if they fit into it.

    If a value is missing, the array is a nullable array of pandas.
    """
    values = column.labels.to_numpy(zero_copy_only=False)
    if dtype.kind == "f":
        return column.taken(np.append(values, np.nan).astype(dtype))
    fits = np.iinfo(dtype).min <= values.min() and values.max() <= np.iinfo(dtype).max
    numbers = column.taken(np.append(values, values[:1]).astype(dtype if fits else values.dtype))
    missing = column.missing
    return pd.arrays.IntegerArray(numbers, missing) if missing.any() else numbers


def _natural(column: Replacement, dtype: Any) -> Any:
    """Return the type of pandas for new values that are of another family than the old values."""
    kind = plain_type(column.labels.type)
    if isinstance(dtype, pd.ArrowDtype):
        return pd.ArrowDtype(kind)
    missing = bool(column.missing.any())
    nullable = missing or (isinstance(dtype, pd.api.extensions.ExtensionDtype) and hasattr(dtype, "numpy_dtype"))
    named = {"whole": "Int64", "boolean": "boolean"} if nullable else {"whole": "int64", "boolean": "bool"}
    return pd.api.types.pandas_dtype(named.get(family(kind)) or column.labels[:1].to_pandas().dtype)


def _taken(column: Replacement, dtype: Any, like: pd.Series[Any]) -> Any:
    """Return the values of all rows in a type of pandas. Missing values are written as in the column `like`."""
    size = len(column.labels)
    missing = column.missing
    if dtype.kind == "O" and isinstance(dtype, np.dtype):
        values = np.empty(size + 1, dtype=object)
        values[:size] = column.labels.to_pylist()
        absent = like[like.isna()]
        values[size] = absent.iloc[0] if len(absent) else None
        return column.taken(values)
    if isinstance(dtype, np.dtype) and dtype.kind in "iub" and missing.any():
        dtype = pd.api.types.pandas_dtype("boolean" if dtype.kind == "b" else f"Int{8 * dtype.itemsize}")
    labels = pd.Series(column.labels.to_pandas() if size else [], dtype=None if size else dtype)
    try:
        labels = labels.astype(dtype)
    except (ValueError, TypeError, OverflowError):
        dtype = labels.dtype
    return labels.array.take(
        column.renumbered(np.append(np.arange(size), -1), np.int64), allow_fill=bool(missing.any())
    )
