"""Arrays of NumPy, Arrow and devices: they are copied to the host, and checked for damage."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# Rows of a row group of a Parquet file, at most. A row group is encoded at once, so they bound a writer's memory.
GROUP_ROWS = 1 << 20


def is_on_device(array: Any) -> bool:
    """Return whether an array is on a device."""
    return hasattr(array, "get")


def on_host(array: Any) -> Any:
    """Return an array of a device as an array of the host; any other array as it is."""
    return array.get() if is_on_device(array) else array


def highest_places(values: npt.NDArray[Any], most: int) -> npt.NDArray[np.int64]:
    """Return the places of the `most` highest values, and of all values that equal the lowest of these, ascending."""
    if most >= len(values):
        return np.arange(len(values))
    return np.flatnonzero(values >= np.partition(values, -most)[-most])


def validate(array: pa.ChunkedArray) -> None:
    """Raise pyarrow.ArrowInvalid for damaged data.

    Arrow takes damaged data from files without an error: an index of a dictionary value that does not exist, say, or a
    text that ends outside its memory.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        for chunk in array.chunks:
            chunk.validate()
            chunk.dictionary.validate(full=True)
            indices = chunk.indices
            # Without missing values, NumPy finds the range of the indices in a tenth of Arrow's time.
            if chunk.null_count or not _between(indices.to_numpy(), len(chunk.dictionary)):
                chunk.validate(full=True)
        return
    # A time of day after midnight is out of range for Arrow, and yet a value: check no values of times and decimals.
    array.validate(full=not (pa.types.is_temporal(kind) or pa.types.is_decimal(kind)))


def _between(numbers: npt.NDArray[Any], stop: int) -> bool:
    """Return whether all numbers are 0 or more and below `stop`."""
    return len(numbers) == 0 or (numbers.min() >= 0 and numbers.max() < stop)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view that cannot be written to.

    Kernels are compiled anew for writable and read-only arguments: with views, they are compiled once.
    """
    view = array.view()
    view.flags.writeable = False
    return view
