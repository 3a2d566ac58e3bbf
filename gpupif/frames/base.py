"""The interface of frames, which turn a table of any kind into columns, and scores into a table of the same kind."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..gpu.cudf_frames import CudfFrames
from ..io.base import Stamp, check_unchanged
from ..utils.arrays import on_host
from .replacement import Replacement


class Frame(ABC):
    """An adapter of a table of one kind.

    names: the names of the columns, in order.
    rows: the number of rows.
    index: the row labels; None for a kind of table without row labels. Default: None.
    index_names: the columns that hold row labels. They are scored only if they are named. Default: none.
    scores_on: the place for the scores: "host", "device", or "either", the place where they are computed. Default:
        "host".
    from_file: whether the table was read from files. Default: False.
    origin: the path that names the files of a table, and the stamp of each file; None for a table of no files. Default:
        None.
    opened_in: the seconds that reading the files took. Default: 0.
    reads_late: whether columns are read only when they are encoded. Default: False.
    """

    names: list[Hashable]
    rows: int
    index: Any = None
    index_names: Sequence[Hashable] = ()
    scores_on: str = "host"
    from_file: bool = False
    origin: tuple[Path, Mapping[Path, Stamp]] | None = None
    opened_in: float = 0.0
    reads_late: bool = False

    @abstractmethod
    def column(self, position: int) -> Any:
        """Return a column as a pandas Series, an Arrow chunked array, a `DeviceColumn`, or an encoded `Column`."""

    def check_unchanged(self) -> None:
        """Raise TableReadError if a file changed: rows read later would not match rows read before."""
        if self.origin is not None:
            check_unchanged(self.origin[1])

    def wrap(self, values: Any, names: Sequence[Hashable]) -> Any:
        """Return scores as a table of the kind of this table, with its index.

        values: scores (columns, rows), on the host or a device. names: the scored columns.
        """
        return pd.DataFrame(on_host(values).T, index=self.index, columns=list(names), copy=False)

    def view(self, scores: Any) -> Any:
        """Return a table that `wrap` made, so that a caller who changes it changes a copy."""
        # pandas and cuDF copy on write if a frame shares its memory with another frame.
        return scores.copy(deep=False)

    def orders(self) -> dict[Hashable, list[Any]]:
        """Return for each column of ordered categories all its values in order. Files do not keep this order."""
        return {}

    def series(self, values: Any, name: str) -> Any:
        """Return a value for each row as a series of the kind of this table, with its index."""
        return pd.Series(on_host(values), index=self.index, name=name)

    def named(self, columns: Mapping[str, Any]) -> Any:
        """Return columns by name as a table of the kind of this table, with its index."""
        return pd.DataFrame(dict(columns), index=self.index, copy=False)

    def host_index(self) -> pd.Index[Any] | None:
        """Return the row labels on the host; None for a kind of table without row labels."""
        return self.index  # type: ignore[no-any-return]

    def device_frames(self) -> CudfFrames | None:
        """Return the library of the device on which the columns are; None for the host."""
        return None

    def active(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context manager that makes the device of the columns, if any, the device of the calling thread."""
        library = self.device_frames()
        return contextlib.nullcontext() if library is None else library.active()

    @abstractmethod
    def arrow(self) -> pa.Table:
        """Return the whole table as Arrow data."""

    def replaced(
        self, names: Sequence[Hashable], columns: Mapping[Hashable, Replacement], kept: npt.NDArray[Any] | None = None
    ) -> Any:
        """Return a table of the kind of this table, with the columns `names`, some of which are replaced.

        columns: the replaced columns. kept: a mask of the rows that stay. Default: all rows. Columns of `columns` have
        only the rows that stay; the other columns of this table and its index have all rows.

        A column whose new values are of the old family keeps its type. The type is made nullable if values are missing
        now. Text that replaces values of another family is categorical. Categories that do not occur are removed from
        all columns.
        """
        raise NotImplementedError


def category_orders(table: Any) -> dict[Hashable, list[Any]]:
    """Return for each column of ordered categories of a pandas or cuDF DataFrame all its values in order."""
    orders: dict[Hashable, list[Any]] = {}
    for name, kind in table.dtypes.items():
        if getattr(kind, "ordered", False):
            categories = kind.categories
            orders[name] = list((categories.to_pandas() if hasattr(categories, "to_pandas") else categories).tolist())
    return orders
