"""The way to count the sets of columns of a table: in memory, on disk, or with Dask."""

from __future__ import annotations

from typing import Any

from ..engines.choose import choose_engine, requested_device
from ..frames.dask_frame import is_dask
from ..frames.open import device_for
from ..utils.progress import Reporter
from .base import SetCounts
from .in_memory import MemoryCounts
from .out_of_core import ChunkCounts
from .request import CountRequest


def open_counts(table: Any, request: CountRequest, report: Reporter) -> SetCounts:
    """A table of any kind, or a path, in streams where it is too large.

    Raises InputError, TableReadError, OutputError, DeviceError.
    """
    if is_dask(table):
        from .dask import DaskCounts

        return DaskCounts(table, request, requested_device())
    engine = choose_engine(device_for(table))
    if request.in_streams(table):
        return ChunkCounts(request.open_temporary_table(table, report), request, report, engine)
    return MemoryCounts(table, request, report, engine)
