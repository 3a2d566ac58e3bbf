"""The way to look at the columns of a table: in memory, from files in streams, or with Dask."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..encoding.column import Column
from ..encoding.device import DeviceColumn, encode_on_device
from ..encoding.encode import encode_column
from ..encoding.merge import ValueCounts, label_array
from ..errors import ColumnTypeError
from ..frames.dask_frame import is_dask
from ..frames.open import open_table
from ..marginals.request import CountRequest
from ..rows.threads import Workers
from ..utils.progress import Reporter
from .column_facts import OTHER, ColumnFacts
from .facts_on_disk import facts_in_streams


def find_facts(table: Any, request: CountRequest, report: Reporter) -> dict[Hashable, ColumnFacts]:
    """The facts of the columns of a table of any kind, or of a path, in streams where it is too large.

    Raises InputError, TableReadError, OutputError, DeviceError.
    """
    if is_dask(table):
        from .dask import facts_on_dask

        return facts_on_dask(table, request, report)
    find = facts_in_streams if request.in_streams(table) else facts_in_memory
    return find(table, request, report)


def facts_in_memory(table: Any, request: CountRequest, report: Reporter) -> dict[Hashable, ColumnFacts]:
    """The facts of a table's columns; table: of any kind but a Dask frame. Raises InputError, TableReadError."""
    frame = open_table(table, request.pick)
    names = request.chosen(frame.names, frame.index_names)
    report.stage("look at", len(names), "columns")

    def find(name: Hashable, array: Any) -> ColumnFacts:
        try:
            column = _encode(name, array)
            values = label_array(column)
        except ColumnTypeError:
            return ColumnFacts(OTHER, rows=frame.rows)
        finally:
            report.advance()
        return ColumnFacts.of(ValueCounts(values, column.counts[: len(values)], column.missing_rows))

    with frame.active(), Workers() as workers:
        arrays = [(name, frame.column(frame.names.index(name))) for name in names]
        on_device = frame.device_frames() is not None
        facts = [find(*one) for one in arrays] if on_device else workers.run(find, arrays)
    return dict(zip(names, facts, strict=True))


def _encode(name: Hashable, array: Any) -> Column:
    if isinstance(array, DeviceColumn):
        return encode_on_device([name], [array], encode_column)[0]
    return encode_column(name, array)
