"""Columns of Polars that others replace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from ..encoding.plain_values import family
from .categories import categories_of
from .replacement import Replacement


def other_column(column: Replacement, like: pl.Series) -> pl.Series:
    """The column as a series; like: the one that it replaces.

    Categories of Polars are shared by all columns of a process, so that those of the old column would be seen in the
    new one: it becomes an Enum, which has its own alone.
    """
    kind = column.labels.type
    same = pa.types.is_null(kind) or family(kind) == family(column.before)
    categorical = like.dtype in (pl.Categorical, pl.Enum)
    if family(kind) == "text" and (categorical or not same):
        order = like.dtype.categories.to_list() if isinstance(like.dtype, pl.Enum) else None
        found = categories_of(column, order)
        return _enum(like.name, found.values.to_pylist(), found.numbers)
    values = pl.Series(like.name, pl.from_arrow(column.labels))
    if same and not categorical:
        # Those that do not fit into the old type keep theirs.
        fitting = values.cast(like.dtype, strict=False)
        values = values if fitting.null_count() > values.null_count() else fitting
    return _taken(values, column)


def without_unused(column: pl.Series) -> pl.Series:
    """Return a column as it is; one of categories becomes an Enum of those that occur, see `other_column`."""
    if column.dtype not in (pl.Categorical, pl.Enum):
        return column
    used = column.drop_nulls().unique()
    order = column.dtype.categories if isinstance(column.dtype, pl.Enum) else used.cast(pl.String).sort()
    return column.cast(pl.String).cast(pl.Enum(order.filter(order.is_in(used.cast(pl.String).implode()))))


def _enum(name: str, categories: Sequence[str], numbers: npt.NDArray[Any]) -> pl.Series:
    """The category of each row, by its number, signed, -1 for none."""
    unsigned = numbers.view(f"u{numbers.itemsize}")
    absent = numbers < 0
    series = pl.Series(name, pl.from_arrow(pa.array(unsigned, mask=absent)) if absent.any() else unsigned)
    return _from_numbers(series, pl.Enum(categories))


def dictionary_of(series: pl.Series) -> pa.Array | None:
    """A column of categories as Arrow data, its numbers as they lie there; None where that may not be."""
    numbers = series.to_physical()
    if isinstance(series.dtype, pl.Enum):
        return pa.DictionaryArray.from_arrays(numbers.to_arrow(), series.dtype.categories.to_arrow(), safe=False)
    # Older versions number the categories of each column anew, and tell nobody how.
    highest = numbers.max() if hasattr(pl, "Categories") else None
    if not isinstance(highest, int) or highest >= len(series):
        return None
    every = _from_numbers(pl.Series(np.arange(highest + 1)).cast(numbers.dtype), series.dtype)
    return pa.DictionaryArray.from_arrays(numbers.to_arrow(), every.cast(pl.String).to_arrow(), safe=False)


def _from_numbers(numbers: pl.Series, kind: Any) -> pl.Series:
    """Categories by their numbers."""
    # Polars 2 has another word for it.
    return numbers.cat.to(kind) if hasattr(numbers.cat, "to") else numbers.cast(kind)


def _taken(values: pl.Series, column: Replacement) -> pl.Series:
    """For each row of a column the value at the place of its label."""
    if (values.dtype.is_integer() or values.dtype.is_float()) and not values.null_count() and len(values):
        array, absent = values.to_numpy(), column.missing
        # What stands for a missing value is any.
        made = column.taken(np.append(array, array[:1]))
        found = pl.from_arrow(pa.array(made, mask=absent)) if absent.any() else pl.Series(made)
        return found.cast(values.dtype).alias(values.name)  # type: ignore[union-attr]
    # The place behind all is that of no value.
    return values.extend_constant(None, 1).gather(column.row_places(np.uint32)).alias(values.name)
