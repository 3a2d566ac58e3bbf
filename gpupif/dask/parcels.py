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
from ..rows.partition import Rows
from .words import WordReader, WordWriter

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


def parcel_rows(
    keys: npt.NDArray[np.uint64], counts: Any, to: npt.NDArray[Any], parts: int, source: int, cut: int
) -> list[Parcel]:
    """Rows in parcels to the parts `to`: their keys, and how often each occurs, unless counts is None."""
    order, stretches = order_by_part(to, parts)
    columns = [keys[order, word] for word in range(keys.shape[1])]
    columns += [] if counts is None else [counts[order].astype(np.uint64)]
    return [
        Parcel(part, source, cut, _rows_as_words([column[start:stop] for column in columns]))
        for part, start, stop in stretches
    ]


def _rows_as_words(columns: Sequence[npt.NDArray[np.uint64]]) -> list[npt.NDArray[np.uint64]]:
    writer = WordWriter()
    writer.put(len(columns[0]), len(columns))
    for column in columns:
        writer.put_numbers(column)
    return writer.arrays


def order_by_part(to: npt.NDArray[Any], parts: int) -> tuple[npt.NDArray[np.intp], list[tuple[int, int, int]]]:
    """Rows in order of the parts they travel to; and where in that order those of each part begin and end."""
    narrow = to.astype(np.uint16 if parts <= 2**16 else np.uint32)
    ends = np.cumsum(np.bincount(narrow, minlength=parts)).tolist()
    stretches = [(part, start, stop) for part, (start, stop) in enumerate(pairwise([0, *ends])) if start < stop]
    return np.argsort(narrow, kind="stable"), stretches


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


def rows_in(parcels: Iterable[Parcel], words: int) -> Rows:
    """The rows of some parcels, one after the other: keys of so many words, and how often each occurs if that came."""
    several = list(parcels)
    size = sum(map(row_count, several))
    keys, counts, start = np.empty((size, words), np.uint64), np.empty(size, np.int64), 0
    counted = not several
    for parcel in several:
        reader = WordReader(parcel.words)
        rows, columns = reader.take(2).tolist()
        for word in range(words):
            keys[start : start + rows, word] = reader.take_numbers(rows)
        counted = columns > words
        if counted:
            counts[start : start + rows] = reader.take_numbers(rows)
        start += rows
    return Rows(keys, counts) if counted else Rows(keys)


def unpack(frame: pd.DataFrame, to: int) -> list[Parcel]:
    """The parcels that reached partition `to`, by cut and source; their words in one array, not to be written."""
    array = pa.array(frame["data"].array)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    words = [np.frombuffer(value.as_buffer(), np.uint64) for chunk in chunks for value in chunk]
    numbers = zip(frame["source"].tolist(), frame["cut"].tolist(), words, strict=True)
    return sorted((Parcel(to, *one) for one in numbers), key=lambda parcel: (parcel.cut, parcel.source))
