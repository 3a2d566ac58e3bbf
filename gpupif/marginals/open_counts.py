"""The choice of the way to count sets of columns of a table: in memory, on disk, or with Dask."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from ..attack.weights import weigh_table
from ..engines.base import Engine
from ..engines.choose import choose_engine, requested_device
from ..frames.dask_frame import is_dask
from ..frames.open import device_for
from ..rows.threads import Workers
from ..utils.progress import Reporter
from .coded_table import code_columns
from .counts_on_disk import ChunkCounts
from .request import CountRequest
from .set_counts import CountResult, MakeFind, SetCounts, SetRequest, Total, with_counts


def open_counts(table: Any, request: CountRequest, report: Reporter) -> SetCounts:
    """Return the counts of a table of any kind, or of a path; a table that is too large for memory is counted on disk.

    Raises InputError, TableReadError, OutputError, DeviceError.
    """
    if is_dask(table):
        from .dask import DaskCounts

        return DaskCounts(table, request, requested_device())
    engine = choose_engine(device_for(table))
    if request.in_streams(table):
        return ChunkCounts(request.open_temporary_table(table, report), request, report, engine)
    return MemoryCounts(table, request, report, engine)


class MemoryCounts(SetCounts):
    """The counts of a table of any kind, or of a path, that is read whole into memory."""

    def __init__(self, table: Any, request: CountRequest, report: Reporter, engine: Engine) -> None:
        self._report = report
        self.device = engine.device
        with contextlib.ExitStack() as opened:
            workers = opened.enter_context(Workers())
            coded = code_columns(table, request, workers, report, engine.frames)
            weighted = None if coded.weights is None else weigh_table(coded.columns, coded.weights, workers)
            self._counting = opened.enter_context(engine.counting(workers))
            self._opened = opened.pop_all()
        self._coded = coded
        self._columns, self._total = with_counts(coded.columns, weighted), Total.from_weights(coded.rows, weighted)
        self._multiplicities = None if weighted is None else weighted.multiplicities
        self.names = coded.names
        self.orders = coded.frame.orders()

    def __exit__(self, *error: Any) -> None:
        self._opened.__exit__(*error)

    def count(self, sets: Sequence[SetRequest], make: MakeFind) -> CountResult:
        coded = self._coded
        find = make(self._columns, self._total)
        self._report.stage("count", len(sets), "sets")
        results = []
        lists = [asked.columns for asked in sets]
        each = self._counting.counters(coded.codes, coded.cardinalities, lists, self._multiplicities)
        for asked, (counter, place) in zip(sets, each, strict=True):
            results.append([find(asked.columns, counter, place)])
            self._report.advance()
        return CountResult(self._columns, self._total, results)
