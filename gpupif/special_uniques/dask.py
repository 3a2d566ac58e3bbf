"""Special uniques of a Dask frame: searched at once by its workers, the scores of its rows lazy."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..attack.request import warn_of_unique
from ..dask.graph import Graph
from ..engines.choose import DeviceRequest
from ..frames.arrow_frame import FileFrame
from ..frames.dask_frame import check_dask_frame
from ..frames.open import open_frame
from ..marginals.coded_table import Coded
from ..marginals.dask import DaskCounts
from ..pipeline import encoded_chunk as chunk_tasks
from .dask_search import count_sets, search_pairs
from .request import SudaRequest
from .result import SpecialUniques
from .uniques import Uniques
from .work import check_sets

if TYPE_CHECKING:
    import dask.dataframe as dd


def place(rows: npt.NDArray[np.int64], values: npt.NDArray[Any], names: pd.Index[Any], partition: Any) -> Any:
    """A frame of the partition's rows: values (columns, rows) of some of them, 0 of all others."""
    frame = open_frame(partition)
    every = np.zeros((len(names), frame.rows), values.dtype)
    every[:, rows] = values
    index = chunk_tasks.ChunkIndex(frame.index, frame.device_frames() is not None, np.empty(0, np.uint32))
    return chunk_tasks.frame_of(every, index, names)


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
        rows = self._number.rows
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
        meta = chunk_tasks.frame_of(
            np.empty((len(names), 0), values.dtype), chunk_tasks.empty_index(self._table._meta), names
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
    check_sets(len(names), request.max_size)
    # Weights are a column like others here: what is counted is rows.
    counts = DaskCounts(table, replace(reads, columns=reads.read(names), weights=None), device)
    found = search_pairs(counts, names, request) or count_sets(counts, names, request)
    warn_of_unique(found.columns, found.starts[-1])
    frame = FileFrame(pa.table({}))
    frame.names, frame.rows = names, found.starts[-1]
    seconds = {"search": time.perf_counter() - started}
    return DaskSpecialUniques(Coded(frame, found.columns), found.uniques, request, seconds, table, found.starts)
