"""The way to look at the columns of a table: in memory, from files in streams, or with Dask."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..frames.dask_frame import is_dask
from ..marginals.request import CountRequest
from ..utils.progress import Reporter
from .facts import ColumnFacts
from .in_memory import facts_in_memory
from .out_of_core import facts_in_streams


def find_facts(table: Any, request: CountRequest, report: Reporter) -> dict[Hashable, ColumnFacts]:
    """The facts of the columns of a table of any kind, or of a path, in streams where it is too large.

    Raises InputError, TableReadError, OutputError, DeviceError.
    """
    if is_dask(table):
        from .dask import facts_on_dask

        return facts_on_dask(table, request, report)
    find = facts_in_streams if request.in_streams(table) else facts_in_memory
    return find(table, request, report)
