"""Columns of pandas that others replace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..encoding.plain_values import family, plain_type
from . import arrow_columns
from .categories import categories_of
from .replacement import Replacement


def other_column(column: Replacement, like: pd.Series[Any]) -> Any:
    """The column as an array of pandas or NumPy; like: the one that it replaces, or some rows of it."""
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
    """Return a column with those of its categories that occur, in their order."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        left = column.cat.remove_unused_categories()
        return column if len(left.cat.categories) == len(column.cat.categories) else left
    if isinstance(column.dtype, pd.ArrowDtype):
        given = pa.chunked_array(column.array.__arrow_array__())
        left = arrow_columns.without_unused(given)
        return column if left is given else pd.Series(pd.arrays.ArrowExtensionArray(left), index=column.index)
    return column


def index_without_unused(index: pd.Index[Any]) -> pd.Index[Any]:
    """Return labels of rows with those categories, or values of levels, that occur."""
    if isinstance(index, pd.MultiIndex):
        left = index.remove_unused_levels()
        levels: Any = [index_without_unused(level) for level in left.levels]
        return left.set_levels(levels)
    return index.remove_unused_categories() if isinstance(index, pd.CategoricalIndex) else index


def _categorical(column: Replacement, dtype: pd.CategoricalDtype | None) -> pd.Categorical:
    order = None if dtype is None else pa.array(dtype.categories, from_pandas=True)
    found = categories_of(column, order)
    categories: Any = pd.Index(found.values.to_pandas())
    if dtype is not None and found.ordered and len(categories):
        categories = dtype.categories[dtype.categories.get_indexer(categories)]
    ordered = bool(dtype is not None and dtype.ordered and found.ordered)
    kind = pd.CategoricalDtype(categories, ordered)
    return pd.Categorical.from_codes(found.numbers, dtype=kind, validate=False)


def _numbers(column: Replacement, dtype: np.dtype[Any]) -> Any:
    """Numbers of NumPy, in their old type where they fit into it; nullable ones of pandas where one is missing."""
    values = column.labels.to_numpy(zero_copy_only=False)
    if dtype.kind == "f":
        return column.taken(np.append(values, np.nan).astype(dtype))
    fits = np.iinfo(dtype).min <= values.min() and values.max() <= np.iinfo(dtype).max
    numbers = column.taken(np.append(values, values[:1]).astype(dtype if fits else values.dtype))
    missing = column.missing
    return pd.arrays.IntegerArray(numbers, missing) if missing.any() else numbers


def _natural(column: Replacement, dtype: Any) -> Any:
    """The type that pandas has for values of another family than a column had."""
    kind = plain_type(column.labels.type)
    if isinstance(dtype, pd.ArrowDtype):
        return pd.ArrowDtype(kind)
    missing = bool(column.missing.any())
    nullable = missing or (isinstance(dtype, pd.api.extensions.ExtensionDtype) and hasattr(dtype, "numpy_dtype"))
    named = {"whole": "Int64", "boolean": "boolean"} if nullable else {"whole": "int64", "boolean": "bool"}
    return pd.api.types.pandas_dtype(named.get(family(kind)) or column.labels[:1].to_pandas().dtype)


def _taken(column: Replacement, dtype: Any, like: pd.Series[Any]) -> Any:
    """Values of a type of pandas by codes; missing ones as the column had them, if it had any."""
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
