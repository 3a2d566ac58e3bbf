"""The interface of frames: from a table of any kind to its columns, and from scores to a table of the same kind."""

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
    """A table seen by its columns.

    names: the names of the columns, in order.
    rows: the number of rows.
    index: the row labels, None for a kind of table that has none.
    index_names: the columns that hold row labels; they are scored only if they are asked for.
    scores_on: the place for its scores: "host", "device", or "either", the place where they are made.
    from_file: whether it was read from files.
    origin: for a table of files, the path that names them, and the stamp of each file.
    opened_in: the seconds that reading the files took.
    reads_late: whether its columns are read only when they are encoded.
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
        """Raise TableReadError if a file changed: what is read of it later would not fit what was read before."""
        if self.origin is not None:
            check_unchanged(self.origin[1])

    def wrap(self, values: Any, names: Sequence[Hashable]) -> Any:
        """Return scores (columns, rows), of host or device, as a frame of the kind that came in, with its index."""
        return pd.DataFrame(on_host(values).T, index=self.index, columns=list(names), copy=False)

    def view(self, scores: Any) -> Any:
        """Return what `wrap` made, to be handed out: a caller who changes it changes a copy."""
        # pandas and cuDF copy on write if a frame shares its memory with another frame.
        return scores.copy(deep=False)

    def orders(self) -> dict[Hashable, list[Any]]:
        """Return for each column of ordered categories all its values in order; files do not keep them."""
        return {}

    def series(self, values: Any, name: str) -> Any:
        """Return one value a row as a series of the kind that came in, with its index."""
        return pd.Series(on_host(values), index=self.index, name=name)

    def named(self, columns: Mapping[str, Any]) -> Any:
        """Return values by name as a frame of the kind that came in, with its index."""
        return pd.DataFrame(dict(columns), index=self.index, copy=False)

    def host_index(self) -> pd.Index[Any] | None:
        """Return the row labels on the host; None for a kind of table that has none."""
        return self.index  # type: ignore[no-any-return]

    def device_frames(self) -> CudfFrames | None:
        """Return the library of the device that the columns lie on; None for the host."""
        return None

    def active(self) -> contextlib.AbstractContextManager[Any]:
        """Make the device that the columns lie on, if any, that of the calling thread for a while."""
        library = self.device_frames()
        return contextlib.nullcontext() if library is None else library.active()

    @abstractmethod
    def arrow(self) -> pa.Table:
        """Return the whole table as Arrow data."""

    def replaced(
        self, names: Sequence[Hashable], columns: Mapping[Hashable, Replacement], kept: npt.NDArray[Any] | None = None
    ) -> Any:
        """Return a frame of the kind that came in, with the columns `names`, some of which are replaced.

        A column with values of its old family keeps its type, made nullable if values are missing now. Text in place
        of anything else is categorical. Categories that do not occur go, from all columns. kept: a mask of the rows
        that stay, None: all. Replaced columns have only these rows; the other columns and the index have all rows.
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
