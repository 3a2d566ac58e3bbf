"""Tables on a GPU: DataFrames of cuDF."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from ..encoding.device import DeviceColumn, DevicePart, in_halves, number_values
from ..gpu.cudf_frames import CudfFrames
from .base import Frame, category_orders
from .pandas_frame import other_column
from .replacement import Replacement

# Rows of a column whose values are numbered at once, and the fewest rows that are tried if memory runs out.
PART_ROWS, LEAST_ROWS = 1 << 26, 1 << 16


class DeviceTable(Frame):
    """A cuDF DataFrame. Its scores are cuDF DataFrames too, without a copy through the host."""

    scores_on = "device"

    def __init__(self, table: Any, library: CudfFrames) -> None:
        self._table = table
        self._library = library
        self.names = list(table.columns)
        self.rows = len(table)
        self.index = table.index

    def column(self, position: int) -> Any:
        name = self.names[position]
        series = self._table[name]

        def number(start: int, stop: int) -> list[DevicePart]:
            return [number_values(self._library, name, series.iloc[start:stop])]

        def parts() -> Iterator[DevicePart]:
            for start in range(0, self.rows, PART_ROWS):
                yield from in_halves(self._library, number, start, min(self.rows, start + PART_ROWS), LEAST_ROWS)

        return DeviceColumn(self._library, parts)

    def orders(self) -> dict[Hashable, list[Any]]:
        return category_orders(self._table)

    def wrap(self, values: Any, names: Sequence[Hashable]) -> Any:
        with self._library.active():
            frame = self._library.frame(dict(enumerate(values)), self.index)
        frame.columns = self._table.columns.take([self.names.index(name) for name in names])
        return frame

    def series(self, values: Any, name: str) -> Any:
        with self._library.active():
            return self._library.frame({name: values}, self.index)[name]

    def named(self, columns: Mapping[str, Any]) -> Any:
        with self._library.active():
            return self._library.frame(dict(columns), self.index)

    def host_index(self) -> pd.Index[Any] | None:
        with self._library.active():
            return self._library.to_pandas(self.index)  # type: ignore[no-any-return]

    def arrow(self) -> pa.Table:
        with self._library.active():
            columns = [self._library.to_arrow(self._table[name]) for name in self.names]
        return pa.table(columns, names=[str(name) for name in self.names])

    def replaced(
        self, names: Sequence[Hashable], columns: Mapping[Hashable, Replacement], kept: Any | None = None
    ) -> Any:
        with self._library.active():
            table = self._table if kept is None else self._table[self._library.xp.asarray(kept)]
            series = {}
            for number, name in enumerate(names):
                column = table[name]
                if name in columns:
                    like = self._library.to_pandas(column.iloc[:1])
                    column = self._library.frames.Series(other_column(columns[name], like))
                    column.index = table.index
                elif hasattr(column.dtype, "categories"):
                    column = column.cat.remove_unused_categories()
                series[number] = column
            frame = self._library.frame(series, table.index)
        frame.columns = self._table.columns.take([self.names.index(name) for name in names])
        return frame

    def device_frames(self) -> CudfFrames:
        return self._library
