"""Special uniques of a Dask frame: searched at once by its workers, the scores of its rows lazy."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..attack.request import warn_of_unique
from ..dask import partition as partition_tasks
from ..dask.graph import Graph
from ..dask.watch import compute
from ..engines.choose import DeviceRequest
from ..frames.arrow_frame import FileFrame
from ..frames.dask_frame import check_dask_frame
from ..frames.open import open_frame
from ..marginals.coded_table import Coded
from ..marginals.dask import DaskCounts, TablePlan
from ..utils.progress import Reporter
from .request import SudaRequest
from .result import SpecialUniques
from .search import check_work
from .search_by_counting import Hits, Minimal, assemble, find_hits, find_minimal
from .search_in_memory import Uniques

if TYPE_CHECKING:
    import dask.dataframe as dd


def find_rows(
    whole: TablePlan, minimal: Minimal, encoded: tuple[partition_tasks.EncodedPartition, partition_tasks.PartitionIndex]
) -> tuple[int, Hits]:
    """How many rows a partition has, and by set of columns those with a minimal combination."""
    local, index = encoded
    hits = find_hits(minimal, whole.rows(local)[0], list(minimal), 0)
    # A row that has one is the only one of its kind.
    row_of = np.empty(len(local.times), np.int64)
    row_of[index.number] = np.arange(len(index.number))
    return len(index.number), {set_: np.sort(row_of[distinct]) for set_, distinct in hits.items()}


def place(rows: npt.NDArray[np.int64], values: npt.NDArray[Any], names: pd.Index[Any], partition: Any) -> Any:
    """A frame of the partition's rows: values (columns, rows) of some of them, 0 of all others."""
    frame = open_frame(partition)
    every = np.zeros((len(names), frame.rows), values.dtype)
    every[:, rows] = values
    index = partition_tasks.PartitionIndex(frame.index, frame.device_frames() is not None, np.empty(0, np.uint32))
    return partition_tasks.frame_of(every, index, names)


class DaskSpecialUniques(SpecialUniques):
    """Special uniques of a Dask frame; made by `gpupif.suda`.

    `summary` and `top` (without labels of rows) are there at once; score, dis_score, msus and contributions are Dask
    collections with the partitions, the index and the divisions of the table, which is read again for its index.
    """

    def __init__(
        self,
        coded: Coded,
        found: Uniques,
        request: SudaRequest,
        seconds: Mapping[str, float],
        table: dd.DataFrame,
        starts: Sequence[int],
    ) -> None:
        super().__init__(coded, found, request, seconds)
        self._table = table
        # The row that each partition begins with, and how many rows there are.
        self._starts = starts

    def _lazy(self, names: pd.Index[Any], values: npt.NDArray[Any]) -> dd.DataFrame:
        """Values of records (columns, records) as a frame of the table's rows; see `FewRows`."""
        rows = self._found.number.rows
        graph = Graph()
        partitions = graph.take(self._table)
        edges = np.searchsorted(rows, self._starts).tolist()
        pieces = [
            partial(place, rows[first:last] - start, values[:, first + 1 : last + 1], names)
            for start, (first, last) in zip(self._starts, pairwise(edges), strict=False)
        ]
        tasks = [
            graph.one("place", *task, number=number) for number, task in enumerate(zip(pieces, partitions, strict=True))
        ]
        meta = partition_tasks.frame_of(
            np.empty((len(names), 0), values.dtype), partition_tasks.empty_index(self._table._meta), names
        )
        return graph.frame("rows", tasks, meta, self._table.divisions)

    def _series(self, values: npt.NDArray[Any], name: str) -> Any:
        return self._named({name: values})[name]

    def _named(self, columns: Mapping[str, npt.NDArray[Any]]) -> Any:
        return self._lazy(pd.Index(list(columns)), np.stack(list(columns.values())))

    def _wrap(self, values: Sequence[npt.NDArray[Any]]) -> Any:
        every = list(self._table.columns)
        labels = self._table._meta.columns.take([every.index(name) for name in self.columns])
        return self._lazy(labels, np.stack(values))


def find_in_dask(table: Any, request: SudaRequest, device: DeviceRequest) -> DaskSpecialUniques:
    """Special uniques of a Dask frame; see `gpupif.suda`."""
    started = time.perf_counter()
    check_dask_frame(table)
    reads = request.reads
    names = reads.chosen(list(table.columns))
    request = request.for_columns(len(names))
    check_work(len(names), request.max_size, 1)
    # Weights are a column like others here: what is counted is rows.
    counts = DaskCounts(table, replace(reads, columns=reads.read(names), weights=None), device)
    found = find_minimal(counts, names, request)
    graph = Graph()
    encoded, whole = counts.add_plan(graph)
    parts = graph.each("hits", find_rows, whole, graph.given("minimal", found.minimal), encoded)
    results = compute(graph.value(graph.all("all", parts)), Reporter(visible=False))
    starts = [0, *accumulate(rows for rows, _ in results)]
    hits = [
        {set_: rows + start for set_, rows in one.items()} for start, (_, one) in zip(starts, results, strict=False)
    ]
    warn_of_unique(found.columns, found.rows)
    frame = FileFrame(pa.table({}))
    frame.names, frame.rows = names, found.rows
    uniques = assemble(found, hits, request)
    seconds = {"search": time.perf_counter() - started}
    return DaskSpecialUniques(Coded(frame, found.columns), uniques, request, seconds, table, starts)
