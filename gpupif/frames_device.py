"""Tables on the device: frames of cuDF, and the base of files that cuDF reads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from .encode_device import DeviceColumn, Part, number_values
from .engines.base import on_host
from .frames import Frame
from .reading import Pick, decode, read_table

if TYPE_CHECKING:
    from .engines.cuda_frames import FrameLibrary

# Rows of a column that are numbered at once.
PART_ROWS = 1 << 26


class DeviceTable(Frame):
    """A cuDF DataFrame; its scores come as such frames, without a copy through the host."""

    kind = "cudf"

    def __init__(self, table: Any, library: FrameLibrary) -> None:
        self._table = table
        self._library = library
        self.names = list(table.columns)
        self.rows = len(table)
        self.index = table.index

    def column(self, position: int) -> Any:
        """See `Frame`."""
        name = self.names[position]
        series = self._table[name]

        def parts() -> Iterator[Part]:
            for start in range(0, self.rows, PART_ROWS):
                yield number_values(self._library, name, series.iloc[start : start + PART_ROWS])

        return DeviceColumn(self._library, parts)

    def wrap(self, values: Any, names: Sequence[Hashable]) -> Any:
        """See `Frame`."""
        with self._library.active():
            frame = self._library.frame(dict(enumerate(values)), self.index)
        frame.columns = self._table.columns.take([self.names.index(name) for name in names])
        return frame

    def series(self, values: Any, name: str) -> Any:
        """See `Frame`."""
        with self._library.active():
            return self._library.frame({name: values}, self.index)[name]

    def host_index(self) -> pd.Index[Any] | None:
        """See `Frame`."""
        return self._library.to_pandas(self.index)  # type: ignore[no-any-return]

    def arrow(self) -> pa.Table:
        """See `Frame`."""
        columns = [self._library.to_arrow(self._table[name]) for name in self.names]
        return pa.table(columns, names=[str(name) for name in self.names])

    def device_frames(self) -> FrameLibrary:
        """See `Frame`."""
        return self._library


class DeviceFile(Frame):
    """A file that cuDF reads; scores come as pandas DataFrames, and may lie on the device until then."""

    kind = "file"

    def __init__(self, file: Path, pick: Pick, sep: str | None, library: FrameLibrary) -> None:
        self._file = file
        self._pick = pick
        self._sep = sep
        self._library = library

    def wrap(self, values: Any, names: Sequence[Hashable]) -> Any:
        """See `Frame`."""
        return pd.DataFrame(on_host(values).T, columns=list(names), copy=False)

    def arrow(self) -> pa.Table:
        """See `Frame`; read anew, on the host."""
        return decode(read_table(self._file, self._pick, self._sep))

    def device_frames(self) -> FrameLibrary:
        """See `Frame`."""
        return self._library

    @abstractmethod
    def column(self, position: int) -> Any:
        """See `Frame`."""
