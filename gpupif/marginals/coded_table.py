"""A table of any kind as columns of codes, for measures that follow from counts alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..encoding.column import Column
from ..encoding.encode import encode_table
from ..frames.base import Frame
from ..frames.file_frame import FileFrame
from ..frames.open import open_table
from ..gpu.cudf_frames import CudfFrames
from ..out_of_core.temporary_table import TemporaryTable
from ..rows.threads import Workers
from ..utils.progress import Reporter
from .request import CountRequest

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class CodedTable:
    """The columns of a table as codes, on the host or on a device.

    frame: the table. columns: the columns with their codes. weights: the column of sampling weights; None without
    weights.
    """

    frame: Frame
    columns: Sequence[Column]
    weights: Column | None = None

    @property
    def read(self) -> list[Column]:
        """The columns that are read: `columns`, and last the column of sampling weights unless it is among them."""
        more = [] if self.weights is None or self.weights.name in self.names else [self.weights]
        return [*self.columns, *more]

    @property
    def rows(self) -> int:
        """The number of rows of the table."""
        return self.frame.rows

    @property
    def names(self) -> list[Hashable]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    @property
    def codes(self) -> list[npt.NDArray[Any]]:
        """The codes of each column."""
        return [column.codes for column in self.columns]

    @property
    def cardinalities(self) -> list[int]:
        """The number of distinct values of each column."""
        return [column.cardinality for column in self.columns]


def code_columns(
    table: Any,
    request: CountRequest,
    workers: Workers,
    report: Reporter | None = None,
    library: CudfFrames | None = None,
) -> CodedTable:
    """Return the requested columns of a table as codes, in the order of the request.

    table: as in `gpupif.score`, without Dask.
    request: the columns to read.
    library: the frames of a device. It reads files there, and leaves the codes of its own tables there. None: codes are
    on the host.

    Raises InputError, TableReadError.
    """
    report = report or Reporter(False)
    frame = open_table(table, request.pick, library)
    names = request.chosen(frame.names, frame.index_names)
    read = request.read(names)
    report.stage("encode", len(read), "columns")
    with frame.active():
        arrays = [frame.column(frame.names.index(name)) for name in read]
        encoded = encode_table(read, arrays, frame.rows, request.missing, workers, report.advance)
        columns = [column if library else column.on_host() for column in encoded.columns]
    weights = None if request.weights is None else columns[read.index(request.weights)]
    return CodedTable(frame, columns[: len(names)], weights)


def without_codes(stream: TemporaryTable, request: CountRequest) -> CodedTable:
    """Return a table that is encoded on disk, with its codes left on disk.

    Frames of its rows are Arrow frames, as for files.
    """
    frame = FileFrame(pa.table({}))
    frame.names, frame.rows = list(stream.names), stream.chunks.rows
    columns = stream.chunks.columns
    names = request.chosen(stream.names)
    weights = None if request.weights is None else columns[list(stream.names).index(request.weights)]
    return CodedTable(frame, columns[: len(names)], weights)
