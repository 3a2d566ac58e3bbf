"""Encoding of columns on the device: the frame library numbers the values part by part, then the parts are merged.

Only the labels, one a different value of a part, come to the host, where they are merged by the rules of the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import ColumnTypeError, DeviceError
from ..gpu.cudf_frames import CudfFrames
from ..gpu.cupy_arrays import DeviceMemoryError
from ..rows.keys import code_type
from ..utils.arrays import on_host
from .column import COUNTED_RANGE, Column, merge_labels, plan_codes, used_labels

# Types of cuDF that are no categories.
NESTED = ("list", "struct", "interval")


class DevicePart(NamedTuple):
    """A part of a column: on the device the number of each row's value, -1 for missing; on the host the values."""

    numbers: Any
    labels: pa.Array


@dataclass(frozen=True)
class DeviceColumn:
    """A column on the device. parts: makes its parts, in order. kind: the type of its labels, if not their own.

    ascending: codes of whole numbers are in the order of the values; all others are in order of first appearance.
    """

    frames: CudfFrames
    parts: Callable[[], Iterable[DevicePart]]
    kind: pa.DataType | None = None
    ascending: bool = True

    def encode(self, name: Hashable) -> Column:
        """Return the column as codes on the device. Raise ColumnTypeError, or DeviceMemoryError if memory runs out."""
        with self.frames.active():
            try:
                return merge_parts(name, self.frames, list(self.parts()), self.kind, self.ascending)
            except Exception as error:
                if self.frames.ran_out(error):
                    raise DeviceMemoryError from error
                raise

    def free_bytes(self) -> int:
        """Return the free memory of the device, after unused memory is released."""
        self.frames.release()
        return self.frames.free_bytes()


def encode_on_device(
    names: Sequence[Hashable], columns: Sequence[DeviceColumn], encode: Callable[[Hashable, DeviceColumn], Column]
) -> list[Column]:
    """Encode columns one after the other: each takes much of the device's memory and all of its threads.

    Codes stay on the device, or move to the host as soon as its memory is too small for all of them. Raise DeviceError
    if it is too small for a single column.
    """
    encoded: list[Column] = []
    leave = True
    for name, column in zip(names, columns, strict=True):
        try:
            encoded.append(encode(name, column))
        except DeviceMemoryError:
            leave = False
            encoded = [one.on_host() for one in encoded]
            free = column.free_bytes()
            try:
                encoded.append(encode(name, column))
            except DeviceMemoryError as error:
                raise DeviceError(
                    f"column {name!r}: the GPU ran out of memory when its values were numbered; {free / 2**30:.3f} GiB "
                    "were free. Free some, or use gpupif.config(device='cpu')."
                ) from error
        if not leave:
            encoded[-1] = encoded[-1].on_host()
    return encoded


def in_halves(
    frames: CudfFrames, make: Callable[[int, int], list[Any]], start: int, stop: int, least: int
) -> list[Any]:
    """Return the results of `make` for a range: one result, or if the device's memory runs out, one for each half."""
    try:
        return make(start, stop)
    except Exception as error:
        if stop - start <= least or not frames.ran_out(error):
            raise
    frames.release()
    middle = (start + stop) // 2
    return in_halves(frames, make, start, middle, least) + in_halves(frames, make, middle, stop, least)


def number_values(frames: CudfFrames, name: Hashable, series: Any) -> DevicePart:
    """Return the values of a series as numbers. Codes of categoricals, and narrow whole numbers, need no search."""
    kind = str(getattr(series.dtype, "name", series.dtype))
    if kind.startswith(NESTED):
        raise ColumnTypeError(name, kind)
    if kind == "category":
        numbers, labels = frames.array(series.cat.codes.fillna(-1)), frames.to_arrow(series.cat.categories)
    elif getattr(series.dtype, "kind", "O") in "iub" and len(series) and not series.isna().any():
        low, high = int(series.min()), int(series.max())
        if high - low >= COUNTED_RANGE:
            numbers, labels = _find_values(frames, series)
        else:
            values = frames.array(series)
            # Unsigned numbers above the lowest stay in their range, signed ones need a wider type.
            wide = values if values.dtype.kind == "u" else values.astype("int64")
            numbers = wide - wide.dtype.type(low)
            labels = pa.array(range(low, high + 1), pa.uint64() if wide.dtype.kind == "u" else pa.int64())
            labels = labels.cast(pa.from_numpy_dtype(values.dtype))
    else:
        numbers, labels = _find_values(frames, series)
    return DevicePart(numbers.astype(_number_type(len(labels))), labels)


def _find_values(frames: CudfFrames, series: Any) -> tuple[Any, pa.Array]:
    numbers, labels = series.factorize()
    return frames.xp.asarray(numbers), frames.to_arrow(labels)


def _number_type(labels: int) -> str:
    return next(kind for kind in ("int8", "int16", "int32", "int64") if labels <= np.iinfo(kind).max)


def merge_parts(
    name: Hashable, frames: CudfFrames, parts: Sequence[DevicePart], kind: pa.DataType | None, ascending: bool
) -> Column:
    """Return a column from its parts, with codes on the device. It is equal for any cut into parts."""
    xp = frames.xp
    kind = kind or next((part.labels.type for part in parts if len(part.labels)), pa.null())
    labels = [part.labels.cast(kind) if len(part.labels) else pa.array([], kind) for part in parts]
    merged, code_of = _merge(name, pa.chunked_array(labels, kind), ascending)
    counts = np.zeros(len(merged) + 1, np.int64)
    # The place of each part's numbers among the merged values, of which the missing value is the first.
    places = []
    start = 0
    for part in parts:
        place = np.append(0, code_of[start : start + len(part.labels)] + 1)
        start += len(part.labels)
        np.add.at(counts, place, on_host(xp.bincount(part.numbers.astype("int64") + 1, minlength=len(place))))
        places.append(place)
    new_codes, kept, has_missing = plan_codes(counts, missing=True)
    codes = frames.full(sum(len(part.numbers) for part in parts), 0, code_type(len(kept)))
    start = 0
    for part, place in zip(parts, places, strict=True):
        stop = start + len(part.numbers)
        codes[start:stop] = xp.asarray(new_codes[place].astype(codes.dtype))[part.numbers.astype("int64") + 1]
        start = stop
    return Column(name, codes, kept, used_labels(merged, counts[1:]), has_missing)


def _merge(name: Hashable, labels: pa.ChunkedArray, ascending: bool) -> tuple[pa.Array, npt.NDArray[Any]]:
    """Return the distinct labels, and each label's number, -1 for null. ascending: whole numbers are sorted."""
    import pyarrow.compute as pc

    if len(labels) == 0:
        return pa.nulls(0), np.zeros(0, np.int64)
    merged, code_of = merge_labels(name, labels)
    if not ascending or not (pa.types.is_integer(labels.type) or pa.types.is_boolean(labels.type)):
        return merged, code_of
    order = pc.array_sort_indices(merged)
    rank = np.empty(len(merged) + 1, np.int64)
    rank[order.to_numpy()] = np.arange(len(merged))
    rank[-1] = -1
    return merged.take(order), rank[code_of]
