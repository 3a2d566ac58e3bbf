"""Columns of Polars that others replace."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from ..encoding.categories import categories_of
from ..encoding.plain import family
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
        found = categories_of(column.codes, column.labels, order, column.counts)
        values = pl.Series(like.name, found.values.to_pylist(), pl.Enum(found.values.to_pylist()))
        return _taken(values, found.numbers, -1)
    values = pl.Series(like.name, pl.from_arrow(column.labels))
    if same and not categorical:
        # Those that do not fit into the old type keep theirs.
        fitting = values.cast(like.dtype, strict=False)
        values = values if fitting.null_count() > values.null_count() else fitting
    return _taken(values, column.codes, len(column.labels))


def some_rows(column: pl.Series, kept: npt.NDArray[Any]) -> pl.Series:
    """Rows of a column; one of categories becomes an Enum of those that occur in them."""
    column = column.filter(pl.Series(kept))
    if column.dtype not in (pl.Categorical, pl.Enum):
        return column
    used = column.drop_nulls().unique()
    order = column.dtype.categories if isinstance(column.dtype, pl.Enum) else used.cast(pl.String).sort()
    return column.cast(pl.String).cast(pl.Enum(order.filter(order.is_in(used.cast(pl.String).implode()))))


def _taken(values: pl.Series, numbers: npt.NDArray[Any], missing: int) -> pl.Series:
    """The value of each row, by its number."""
    if (values.dtype.is_integer() or values.dtype.is_float()) and not values.null_count() and len(values):
        array = values.to_numpy()
        if missing < 0 or missing == len(array):
            # What stands for a missing value is any.
            array = np.append(array, array[:1])
        absent = numbers == missing
        made = pa.array(array[numbers], mask=absent) if absent.any() else array[numbers]
        found = pl.from_arrow(made) if isinstance(made, pa.Array) else pl.Series(made)
        return found.cast(values.dtype).alias(values.name)  # type: ignore[union-attr]
    # A number too many is that of no value.
    places = numbers.astype(np.uint32)
    if missing < 0:
        places[numbers < 0] = len(values)
    return values.extend_constant(None, 1).gather(places).alias(values.name)
