"""What travels in a shuffle: one parcel for each place that a partition sends rows to, not one record for each row.

A frame of parcels has few rows, so Dask's shuffles move their bytes without looking at them, and those of a parcel stay
in the order in which they were packed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gpupif.kernels import partition as kernels

from ..rows.keys import KeyLayout
from ..rows.partition import Blocks, Rows, id_type, partition_by
from ..rows.threads import Workers
from .words import Empty, WordReader, WordWriter

# The column that Dask's shuffles go by.
TO = "_partitions"
BYTES: Any = pd.ArrowDtype(pa.large_binary())
# What a frame of parcels looks like to Dask.
META = pd.DataFrame({TO: np.empty(0, np.int64), "source": np.empty(0, np.int64), "cut": np.empty(0, np.int64)}).assign(
    data=pd.Series(pd.array([], dtype=BYTES), dtype=BYTES)
)


class Parcel(NamedTuple):
    """64-bit words from partition `source` to partition `to`, of the cut with number `cut` (see `shuffle`).

    words: an array, or several that follow each other.
    """

    to: int
    source: int
    cut: int
    words: Any


def pack(parcels: Sequence[Parcel]) -> pd.DataFrame:
    """A frame of these parcels; their words side by side in one array."""
    several = [parcel.words if isinstance(parcel.words, list) else [parcel.words] for parcel in parcels]
    edges = np.cumsum([0, *(sum(words.size for words in arrays) for arrays in several)])
    room = np.concatenate([np.empty(0, np.uint64), *(words for arrays in several for words in arrays)])
    buffers = [None, pa.py_buffer(8 * edges), pa.py_buffer(room)]
    data = pa.Array.from_buffers(pa.large_binary(), len(parcels), buffers)
    numbers = np.array([parcel[:3] for parcel in parcels], np.int64).reshape(-1, 3)
    frame = pd.DataFrame(dict(zip(META.columns[:3], numbers.T, strict=True)))
    return frame.assign(data=pd.Series(pd.array(data, dtype=BYTES)))


def parcel_memory(rows: Rows) -> int:
    """Bytes to work in while rows are made parcels, twice; what is not touched takes none."""
    return 8 * len(rows.keys) * (4 * int(rows.keys.shape[1]) + 8)


def parcel_rows(rows: Rows, to: npt.NDArray[Any], parts: int, source: int, cut: int, workers: Workers) -> list[Parcel]:
    """Rows in parcels to the parts `to`: their keys, and how often each occurs if that is known."""
    parcels = []
    blocks = order_by_part(rows, to, parts, workers)
    counts = blocks.rows.counts
    for part, start, stop in stretches(blocks):
        writer = WordWriter(workers.empty)
        writer.put(stop - start, len(counts) > 0)
        for column in blocks.rows.keys[start:stop].T:
            writer.put_numbers(np.ascontiguousarray(column))
        if len(counts):
            own = workers.empty(stop - start, np.uint64)
            own[:] = counts[start:stop]
            writer.put_numbers(own)
        parcels.append(Parcel(part, source, cut, writer.arrays))
    return parcels


def order_by_part(rows: Rows, to: npt.NDArray[Any], parts: int, workers: Workers) -> Blocks:
    """Rows in order of the parts they travel to, a block for each."""
    return partition_by(rows, to.astype(id_type(parts)), parts, workers)


def stretches(blocks: Blocks) -> list[tuple[int, int, int]]:
    """The parts that rows travel to, and where those of each begin and end in their order."""
    edges = pairwise(blocks.offsets.tolist())
    return [(part, start, stop) for part, (start, stop) in enumerate(edges) if start < stop]


def part_of_keys(
    keys: npt.NDArray[np.uint64], layout: KeyLayout, by: Iterable[int], parts: int
) -> npt.NDArray[np.uint32]:
    """The part of each row, by the hash of some columns."""
    ids = np.zeros(len(keys), np.uint32)
    if parts > 1:
        kernels.partition_ids(keys, layout.masks(by), parts, ids)
    return ids


def row_count(parcel: Parcel) -> int:
    """How many rows came in a parcel."""
    return int(parcel.words[0])


def rows_in(parcels: Iterable[Parcel], words: int, empty: Empty = np.empty) -> Rows:
    """The rows of some parcels, one after the other: keys of so many words, and how often each occurs if that came.

    empty: makes their arrays.
    """
    several = list(parcels)
    size = sum(map(row_count, several))
    keys, counts, start = empty((size, words), np.uint64), empty(size, np.int64), 0
    counted = False
    for parcel in several:
        reader = WordReader(parcel.words, empty)
        rows, counted = reader.take(2).tolist()
        for word in range(words):
            reader.take_numbers(keys[start : start + rows, word])
        if counted:
            reader.take_numbers(counts[start : start + rows].view(np.uint64))
        start += rows
    return Rows(keys, counts) if counted else Rows(keys)


def unpack(frame: pd.DataFrame, to: int) -> list[Parcel]:
    """The parcels that reached partition `to`, by cut and source; their words in one array, not to be written."""
    array = pa.array(frame["data"].array)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    words = [np.frombuffer(value.as_buffer(), np.uint64) for chunk in chunks for value in chunk]
    numbers = zip(frame["source"].tolist(), frame["cut"].tolist(), words, strict=True)
    return sorted((Parcel(to, *one) for one in numbers), key=lambda parcel: (parcel.cut, parcel.source))
