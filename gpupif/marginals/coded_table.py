"""A table of any kind as columns of codes, for what is computed from counts alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..encoding.column import Column
from ..encoding.encode import encode_table
from ..errors import InputError
from ..frames.arrow_frame import FileFrame
from ..frames.open import open_table
from ..utils.progress import Reporter
from ..utils.validation import as_list, check_exist, check_unique, check_word

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..frames.base import Frame
    from ..gpu.base import FrameLibrary
    from ..io.base import Source
    from ..io.common import Pick
    from ..out_of_core.temporary_table import Stream
    from ..rows.threads import Workers


@dataclass(frozen=True)
class Coded:
    """Columns of a table as codes, on the host or, if that was asked for, on a device. frame: the table."""

    frame: Frame
    columns: Sequence[Column]

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return self.frame.rows

    @property
    def names(self) -> list[Hashable]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @property
    def codes(self) -> list[npt.NDArray[Any]]:
        """Codes of each column."""
        return [column.codes for column in self.columns]

    @property
    def cardinalities(self) -> list[int]:
        """Number of distinct values of each column."""
        return [column.cardinality for column in self.columns]


def code_columns(
    table: Any,
    columns: Sequence[Hashable] | None,
    missing: str,
    workers: Workers,
    report: Reporter | None = None,
    argument: str = "columns",
    sep: str | None = None,
    library: FrameLibrary | None = None,
) -> Coded:
    """The columns of a table (None: all) as codes, in the order they are named in.

    library: frames of a device, which reads files then and keeps the codes of tables that it has (None: codes are on
    the host).

    table, missing: as of `gpupif.score`. argument: what errors call `columns`. sep: the separator of a CSV
    file (None: found by itself). Raises InputError, TableReadError.
    """
    check_word("missing", missing, ("category", "error"))
    report = report or Reporter(False)

    frame = open_table(table, picked(columns, argument), library, sep)
    names = chosen(frame.names, frame.index_names, columns, argument)
    report.stage("encode", len(names), "columns")
    with frame.active():
        arrays = [frame.column(frame.names.index(name)) for name in names]
        encoded = encode_table(names, arrays, frame.rows, missing, workers, report.advance)
        return Coded(frame, [column if library else column.on_host() for column in encoded.columns])


def without_codes(stream: Stream) -> Coded:
    """A table that is encoded on disk, its codes left there; frames of its rows are of the kind that files give."""
    frame = FileFrame(pa.table({}))
    frame.names, frame.rows = list(stream.names), stream.chunks.rows
    return Coded(frame, stream.chunks.columns)


def code_stream(stream: Stream) -> Coded:
    """A table that is encoded on disk as codes in memory."""
    table, codes = without_codes(stream), stream.chunks.all_codes()
    return Coded(table.frame, [replace(column, codes=own) for column, own in zip(table.columns, codes, strict=True)])


def chosen(
    names: Sequence[Hashable],
    index_names: Sequence[Hashable],
    columns: Sequence[Hashable] | None,
    argument: str = "columns",
) -> list[Hashable]:
    """The columns that are asked for (None: all but row labels) of a table with columns `names`; raises InputError."""
    if not names:
        raise InputError("table: expected at least one column, got none.")
    check_unique(names)
    if columns is None:
        labels = index_names if len(index_names) < len(names) else ()
        return [name for name in names if name not in labels]
    wanted = as_list(argument, columns)
    if not wanted:
        raise InputError(f"{argument}: expected at least one column, got an empty list.")
    check_exist(argument, wanted, names)
    return wanted


def picked(columns: Sequence[Hashable] | None, argument: str = "columns") -> Pick:
    """Of a file's columns those that are asked for (None: all); raises InputError as `chosen`."""

    def pick(names: Sequence[str]) -> list[str] | None:
        return None if columns is None else [str(name) for name in chosen(names, (), columns, argument)]

    return pick


def chosen_of(source: Source, columns: Sequence[Hashable] | None, argument: str = "columns") -> list[Hashable]:
    """`chosen` of a table of files."""
    return chosen(source.names, source.index_names, columns, argument)
