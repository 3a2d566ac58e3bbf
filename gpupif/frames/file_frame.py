"""Frames of files: files that are read to Arrow data, or that are encoded already."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..encoding.column import Column
from ..io.base import Pick, Source, decode, pandas_index_names
from .arrow_frame import replaced_table
from .base import Frame
from .replacement import Replacement


class FileFrame(Frame):
    """Files that are read to Arrow data. Their scores become pandas DataFrames.

    It is the base class of all frames of files, which differ in the source of their columns.
    """

    scores_on = "either"
    from_file = True

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.names = list(table.column_names)
        self.rows = table.num_rows
        self.index_names = pandas_index_names(table.schema)

    def column(self, position: int) -> Any:
        return self._table.column(position)

    def arrow(self) -> pa.Table:
        return decode(self._table)

    def replaced(
        self, names: Sequence[Hashable], columns: Mapping[Hashable, Replacement], kept: Any | None = None
    ) -> Any:
        return replaced_table(self.arrow(), names, columns, kept).to_pandas()


class EncodedSource(Source):
    """Files, or another source that is read as a stream, whose values are codes already: nobody has to read them."""

    @abstractmethod
    def encoded(self, names: Sequence[str]) -> list[Column]:
        """Return columns with the codes of all rows, in memory."""

    @abstractmethod
    def table(self, names: Sequence[str]) -> pa.Table:
        """Return columns with their values, in the types of the files."""


class EncodedFrame(FileFrame):
    """A frame of an `EncodedSource`, whose columns are encoded already."""

    def __init__(self, source: EncodedSource, pick: Pick) -> None:
        names = pick(source.names)
        self._source = source
        self._picked = source.names if names is None else names
        self.names = list(self._picked)
        self.rows = source.about_rows()
        self.index_names = [name for name in source.index_names if name in self._picked]
        self._columns = source.encoded(self._picked)

    def column(self, position: int) -> Any:
        """See `Frame`; the column is a `Column` of codes."""
        return self._columns[position]

    def arrow(self) -> pa.Table:
        """See `Frame`; values are read again, as the source holds only codes."""
        self.check_unchanged()
        table = self._source.table(self._picked)
        self.check_unchanged()
        return table
