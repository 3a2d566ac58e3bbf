"""Messages of a shuffle: one for each partition that a chunk sends rows to, not one record for each row.

A frame of messages has few rows, so Dask's shuffles move their bytes without looking at them, and those of a message stay
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
# What a frame of messages looks like to Dask.
META = pd.DataFrame({TO: np.empty(0, np.int64), "source": np.empty(0, np.int64), "cut": np.empty(0, np.int64)}).assign(
    data=pd.Series(pd.array([], dtype=BYTES), dtype=BYTES)
)


class Message(NamedTuple):
    """Words of 64 bits from chunk `source` to partition `to`, or back, of the cut with number `cut` (see `routes`).

    words: an array, or several that follow each other.
    """

    to: int
    source: int
    cut: int
    words: Any


def pack(messages: Sequence[Message]) -> pd.DataFrame:
    """A frame of these messages; their words side by side in one array."""
    several = [message.words if isinstance(message.words, list) else [message.words] for message in messages]
    edges = np.cumsum([0, *(sum(words.size for words in arrays) for arrays in several)])
    room = np.concatenate([np.empty(0, np.uint64), *(words for arrays in several for words in arrays)])
    buffers = [None, pa.py_buffer(8 * edges), pa.py_buffer(room)]
    data = pa.Array.from_buffers(pa.large_binary(), len(messages), buffers)
    numbers = np.array([message[:3] for message in messages], np.int64).reshape(-1, 3)
    frame = pd.DataFrame(dict(zip(META.columns[:3], numbers.T, strict=True)))
    return frame.assign(data=pd.Series(pd.array(data, dtype=BYTES)))


def message_memory(rows: Rows) -> int:
    """Bytes to work in while rows are made messages, twice; what is not touched takes none."""
    return 8 * len(rows.keys) * (4 * int(rows.keys.shape[1]) + 8)


def rows_to_messages(
    rows: Rows, to: npt.NDArray[Any], partitions: int, source: int, cut: int, workers: Workers
) -> list[Message]:
    """Return rows in messages to the partitions `to`: their keys, and how often each occurs if that is known."""
    return blocks_to_messages(order_by_partition(rows, to, partitions, workers), source, cut, workers)


def blocks_to_messages(blocks: Blocks, source: int, cut: int, workers: Workers) -> list[Message]:
    """Return the messages of rows that are in order of their partitions."""
    messages = []
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
        messages.append(Message(partition, source, cut, writer.arrays))
    return messages


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


def row_count(message: Message) -> int:
    """Return how many rows came in a message."""
    return int(message.words[0])


def rows_in(messages: Iterable[Message], words: int, empty: Empty = np.empty) -> Rows:
    """The rows of some messages, one after the other: keys of so many words, and how often each occurs if that came.

    empty: makes their arrays.
    """
    several = list(messages)
    size = sum(map(row_count, several))
    keys, counts, start = empty((size, words), np.uint64), empty(size, np.int64), 0
    counted = False
    for message in several:
        reader = WordReader(message.words, empty)
        rows, counted = reader.take(2).tolist()
        for word in range(words):
            reader.take_numbers(keys[start : start + rows, word])
        if counted:
            reader.take_numbers(counts[start : start + rows].view(np.uint64))
        start += rows
    return Rows(keys, counts) if counted else Rows(keys)


def unpack(frame: pd.DataFrame | pa.Table, to: int) -> list[Message]:
    """Return the messages that reached partition, or chunk, `to`, in order of cut and source.

    The words of a message are in one array, which must not be written to.
    """
    array = pa.array(frame["data"].array) if isinstance(frame, pd.DataFrame) else frame["data"]
    arrays = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    words = [np.frombuffer(value.as_buffer(), np.uint64) for own in arrays for value in own]
    sources, cuts = (frame[name].to_numpy().tolist() for name in ("source", "cut"))
    numbers = zip(sources, cuts, words, strict=True)
    return sorted((Message(to, *one) for one in numbers), key=lambda message: (message.cut, message.source))
