"""Parcels of a shuffle: one for each partition that a chunk sends rows to, not one record for each row.

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
from .packed_numbers import Empty, WordReader, WordWriter

# The column that Dask's shuffles go by.
TO = "_partitions"
BYTES: Any = pd.ArrowDtype(pa.large_binary())
# What a frame of parcels looks like to Dask.
META = pd.DataFrame({TO: np.empty(0, np.int64), "source": np.empty(0, np.int64), "cut": np.empty(0, np.int64)}).assign(
    data=pd.Series(pd.array([], dtype=BYTES), dtype=BYTES)
)


class Parcel(NamedTuple):
    """Words of 64 bits from chunk `source` to partition `to`, or back, of the cut with number `cut` (see `routes`).

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


def parcel_rows(
    rows: Rows, to: npt.NDArray[Any], partitions: int, source: int, cut: int, workers: Workers
) -> list[Parcel]:
    """Return rows in parcels to the partitions `to`: their keys, and how often each occurs if that is known."""
    return block_parcels(order_by_partition(rows, to, partitions, workers), source, cut, workers)


def block_parcels(blocks: Blocks, source: int, cut: int, workers: Workers) -> list[Parcel]:
    """Return the parcels of rows that are in order of their partitions."""
    parcels = []
    counts = blocks.rows.counts
    for partition, start, stop in stretches(blocks):
        writer = WordWriter(workers.empty)
        writer.put(stop - start, len(counts) > 0)
        for column in blocks.rows.keys[start:stop].T:
            writer.put_numbers(np.ascontiguousarray(column))
        if len(counts):
            own = workers.empty(stop - start, np.uint64)
            own[:] = counts[start:stop]
            writer.put_numbers(own)
        parcels.append(Parcel(partition, source, cut, writer.arrays))
    return parcels


def order_by_partition(rows: Rows, to: npt.NDArray[Any], partitions: int, workers: Workers) -> Blocks:
    """Rows in order of the partitions they travel to, a block for each."""
    return partition_by(rows, to.astype(id_type(partitions)), partitions, workers)


def stretches(blocks: Blocks) -> list[tuple[int, int, int]]:
    """The partitions that rows travel to, and where those of each begin and end in their order."""
    edges = pairwise(blocks.offsets.tolist())
    return [(partition, start, stop) for partition, (start, stop) in enumerate(edges) if start < stop]


def partition_of_keys(
    keys: npt.NDArray[np.uint64], layout: KeyLayout, by: Iterable[int], partitions: int
) -> npt.NDArray[np.uint32]:
    """The partition of each row, by the hash of some columns."""
    ids = np.zeros(len(keys), np.uint32)
    if partitions > 1:
        kernels.partition_ids(keys, layout.masks(by), partitions, ids)
    return ids


def row_count(parcel: Parcel) -> int:
    """Return how many rows came in a parcel."""
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


def unpack(frame: pd.DataFrame | pa.Table, to: int) -> list[Parcel]:
    """Return the parcels that reached partition, or chunk, `to`, in order of cut and source.

    The words of a parcel are in one array, which must not be written to.
    """
    array = pa.array(frame["data"].array) if isinstance(frame, pd.DataFrame) else frame["data"]
    arrays = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    words = [np.frombuffer(value.as_buffer(), np.uint64) for own in arrays for value in own]
    sources, cuts = (frame[name].to_numpy().tolist() for name in ("source", "cut"))
    numbers = zip(sources, cuts, words, strict=True)
    return sorted((Parcel(to, *one) for one in numbers), key=lambda parcel: (parcel.cut, parcel.source))
