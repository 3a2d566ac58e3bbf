"""Messages of a shuffle: a chunk sends one message to each partition, not one record for each row.

A frame has one row for each message. Dask's shuffles move the bytes of a message without looking at them, so the rows
in a message keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
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

# The column that names the partition of each message; Dask's shuffles read it.
TO = "_partitions"
BYTES: Any = pd.ArrowDtype(pa.large_binary())
# An empty frame of messages, which shows Dask the types of the columns.
META = pd.DataFrame({TO: np.empty(0, np.int64), "source": np.empty(0, np.int64), "cut": np.empty(0, np.int64)}).assign(
    data=pd.Series(pd.array([], dtype=BYTES), dtype=BYTES)
)


class Message(NamedTuple):
    """The words that one chunk sends to one partition, or that a partition sends back to a chunk.

    to: int. The number of the receiving partition; on the way back, of the receiving chunk.
    source: int. The number of the sending chunk; on the way back, of the sending partition.
    cut: int. The number of the cut in `Routes.cuts`.
    words: array of uint64, or a list of arrays that follow each other.
    """

    to: int
    source: int
    cut: int
    words: Any


def pack(messages: Sequence[Message]) -> pd.DataFrame:
    """Return a frame of messages; the words of all messages share one array."""
    several = [message.words if isinstance(message.words, list) else [message.words] for message in messages]
    edges = np.cumsum([0, *(sum(words.size for words in arrays) for arrays in several)])
    room = np.concatenate([np.empty(0, np.uint64), *(words for arrays in several for words in arrays)])
    buffers = [None, pa.py_buffer(8 * edges), pa.py_buffer(room)]
    data = pa.Array.from_buffers(pa.large_binary(), len(messages), buffers)
    numbers = np.array([message[:3] for message in messages], np.int64).reshape(-1, 3)
    frame = pd.DataFrame(dict(zip(META.columns[:3], numbers.T, strict=True)))
    return frame.assign(data=pd.Series(pd.array(data, dtype=BYTES)))


def message_memory(rows: Rows) -> int:
    """Return the bytes that `rows_to_messages` needs at most for these rows, twice over.

    Memory that is never touched is not taken from the system.
    """
    return 8 * len(rows.keys) * (4 * int(rows.keys.shape[1]) + 8)


def rows_to_messages(
    rows: Rows, to: npt.NDArray[Any], partitions: int, source: int, cut: int, workers: Workers
) -> list[Message]:
    """Return rows as messages: their keys, and how often each row counts if that is known.

    to: array, one for each row. The partition of the row.
    """
    return blocks_to_messages(order_by_partition(rows, to, partitions, workers), source, cut, workers)


def blocks_to_messages(blocks: Blocks, source: int, cut: int, workers: Workers) -> list[Message]:
    """Return one message for each partition from rows that are ordered by partition."""
    messages = []
    counts = blocks.rows.counts
    for partition, start, stop in stretches(blocks):
        writer = WordWriter(workers.empty)
        writer.put(stop - start, blocks.rows.keys.shape[1], len(counts) > 0)
        for column in blocks.rows.keys[start:stop].T:
            writer.put_numbers(np.ascontiguousarray(column))
        if len(counts):
            own = workers.empty(stop - start, np.uint64)
            own[:] = counts[start:stop]
            writer.put_numbers(own)
        messages.append(Message(partition, source, cut, writer.arrays))
    return messages


def only_counts(blocks: Blocks, counts: npt.NDArray[Any]) -> Blocks:
    """Return blocks of rows without keys, for messages that follow messages with the keys of the same rows.

    counts: array, one for each row, in the order of the rows before they were ordered by partition.
    """
    return replace(blocks, rows=Rows(blocks.rows.keys[:, :0], counts[blocks.order]))


def order_by_partition(rows: Rows, to: npt.NDArray[Any], partitions: int, workers: Workers) -> Blocks:
    """Return rows ordered by partition, one block for each partition.

    to: array, one for each row. The partition of the row.
    """
    return partition_by(rows, to.astype(id_type(partitions)), partitions, workers)


def stretches(blocks: Blocks) -> list[tuple[int, int, int]]:
    """Return (partition, start, stop) for each partition with rows: the range of its rows in the order of blocks."""
    edges = pairwise(blocks.offsets.tolist())
    return [(partition, start, stop) for partition, (start, stop) in enumerate(edges) if start < stop]


def partition_of_keys(
    keys: npt.NDArray[np.uint64], layout: KeyLayout, by: Iterable[int], partitions: int
) -> npt.NDArray[np.uint32]:
    """Return the partition of each row, from the hash of the columns `by`.

    keys: array (rows, words). The row keys.
    """
    ids = np.zeros(len(keys), np.uint32)
    if partitions > 1:
        kernels.partition_ids(keys, layout.masks(by), partitions, ids)
    return ids


def row_count(message: Message) -> int:
    """Return the number of rows in a message."""
    return int(message.words[0])


def rows_in(messages: Iterable[Message], words: int, empty: Empty = np.empty) -> Rows:
    """Return the rows of messages, one message after the other, with counts if the messages have them.

    The keys are undefined if the messages have only counts, see `only_counts`.

    words: int. The number of words of a key.
    empty: function that allocates arrays, such as `numpy.empty`.
    """
    several = list(messages)
    size = sum(map(row_count, several))
    keys, counts, start = empty((size, words), np.uint64), empty(size, np.int64), 0
    counted = False
    for message in several:
        reader = WordReader(message.words, empty)
        rows, own_words, counted = reader.take(3).tolist()
        for word in range(own_words):
            reader.take_numbers(keys[start : start + rows, word])
        if counted:
            reader.take_numbers(counts[start : start + rows].view(np.uint64))
        start += rows
    return Rows(keys, counts) if counted else Rows(keys)


def messages_in(frame: pd.DataFrame) -> list[Message]:
    """Return the messages in a frame. The words of a message are one read-only array.

    A cluster that shuffled the frame has removed the column of partitions; `Message.to` is 0 then.
    """
    array = pa.array(frame["data"].array)
    arrays = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    words = [np.frombuffer(value.as_buffer(), np.uint64) for own in arrays for value in own]
    partitions, *others = META.columns[:3]
    to = frame[partitions].tolist() if partitions in frame else [0] * len(frame)
    return [Message(*own) for own in zip(to, *(frame[name].tolist() for name in others), words, strict=True)]


def unpack(arrived: pd.DataFrame | list[Message], to: int) -> list[Message]:
    """Return the messages that reached partition (or chunk) `to`, in order of cut and source."""
    messages = arrived if isinstance(arrived, list) else messages_in(arrived)
    return sorted((message._replace(to=to) for message in messages), key=lambda message: (message.cut, message.source))
