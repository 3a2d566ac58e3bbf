"""Dask DataFrames: they are recognised without importing Dask, and the order of their categories is read."""

from __future__ import annotations

from collections.abc import Container, Hashable
from typing import Any

from ..errors import InputError, warn
from .base import category_orders


def known_orders(table: Any, used: Container[Hashable]) -> dict[Hashable, list[Any]]:
    """Return `category_orders` of a Dask DataFrame, without columns whose categories Dask does not know yet.

    used: the columns whose order matters. Warns if Dask does not know the categories of such a column.
    """
    orders = category_orders(table._meta)
    unknown = [name for name in orders if not table[name].cat.known]
    for name in unknown:
        if name in used:
            warn(
                f"table: Dask does not know the categories of column {name!r}, so that their order is not used: they "
                f"are as far apart as any. Give their distance, or make them known: table[{name!r}].cat.as_known().",
                UserWarning,
            )
    return {name: order for name, order in orders.items() if name not in unknown}


def check_dask_frame(table: Any, argument: str = "table") -> None:
    """Raise InputError for a Dask collection that is no DataFrame. argument: the name of the table in the message."""
    from dask.dataframe import DataFrame

    if not isinstance(table, DataFrame):
        raise InputError(f"{argument}: expected a Dask DataFrame, got a Dask {type(table).__name__}. Make it a frame.")


def is_dask(table: Any) -> bool:
    """Return whether a table is a Dask collection; Dask itself is not imported."""
    return any(base.__module__.partition(".")[0] == "dask" for base in type(table).__mro__)
