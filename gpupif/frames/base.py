"""Frames in and out: one adapter a kind, from a frame to its columns and from scores to a frame of the same kind."""

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
from ..io.common import Stamp, check_unchanged
from ..utils.arrays import on_host
from .arrow_columns import replaced_table
from .replacement import Replacement


class Frame(ABC):
    """A table seen by its columns.

    names: of the columns, in order. index: row labels, where the kind has them. index_names: columns that hold row
    labels, scored only where they are asked for. scores_on: where its scores are to lie, "host", "device", or "either"
    for where they are made. from_file: it was read from files; origin: the path that names them, and what tells each
    from others; opened_in: seconds that this took; reads_late: its columns are read only when they are encoded.
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
        """A column as a pandas Series, an Arrow chunked array, a `DeviceColumn`, or an encoded `Column`."""

    def check_unchanged(self) -> None:
        """Raise TableReadError where a file is not what it was: what is read of it later would not fit."""
        if self.origin is not None:
            check_unchanged(self.origin[1])

    def wrap(self, values: Any, names: Sequence[Hashable]) -> Any:
        """A frame of the kind that came in, with its rows and index, of scores (columns, rows) of host or device."""
        return pd.DataFrame(on_host(values).T, index=self.index, columns=list(names), copy=False)

    def view(self, scores: Any) -> Any:
        """What `wrap` made, to be handed out: whoever changes it changes a copy."""
        # pandas and cuDF copy on write what shares memory with another frame.
        return scores.copy(deep=False)

    def orders(self) -> dict[Hashable, list[Any]]:
        """Of ordered categories, by column, all values in order; a file does not keep them."""
        return {}

    def series(self, values: Any, name: str) -> Any:
        """One value a row as a series of the kind that came in, with its index."""
        return pd.Series(on_host(values), index=self.index, name=name)

    def named(self, columns: Mapping[str, Any]) -> Any:
        """A frame of the kind that came in, with its rows and index, of values by name."""
        return pd.DataFrame(dict(columns), index=self.index, copy=False)

    def host_index(self) -> pd.Index[Any] | None:
        """The row labels on the host, where the kind has them."""
        return self.index  # type: ignore[no-any-return]

    def device_frames(self) -> CudfFrames | None:
        """What the table's columns lie in, where that is a device."""
        return None

    def active(self) -> contextlib.AbstractContextManager[Any]:
        """Where the columns lie on a device, make it that of the calling thread for a while."""
        library = self.device_frames()
        return contextlib.nullcontext() if library is None else library.active()

    @abstractmethod
    def arrow(self) -> pa.Table:
        """The whole table as Arrow data."""

    def replaced(
        self, names: Sequence[Hashable], columns: Mapping[Hashable, Replacement], kept: npt.NDArray[Any] | None = None
    ) -> Any:
        """A frame of the kind that came in, of the columns `names`, some of which are replaced.

        A column with values of its old family keeps its type, a nullable one where values are missing now; text in
        place of anything else is categorical. Categories that do not occur go, from all columns. kept: a mask of the
        rows that stay, which columns that are replaced have alone; of the others, rows and index are as they came.
        """
        return replaced_table(self.arrow(), names, columns, kept).to_pandas()


def category_orders(table: Any) -> dict[Hashable, list[Any]]:
    """The values, in order, of ordered categories of a pandas or cuDF DataFrame."""
    found: dict[Hashable, list[Any]] = {}
    for name, kind in table.dtypes.items():
        if getattr(kind, "ordered", False):
            categories = kind.categories
            found[name] = list((categories.to_pandas() if hasattr(categories, "to_pandas") else categories).tolist())
    return found
