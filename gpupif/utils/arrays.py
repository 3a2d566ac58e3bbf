"""Arrays of NumPy, Arrow and devices: brought to the host, and checked to hold together."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import pyarrow as pa

# Rows of a row group of a Parquet file at most: what is encoded at once, which keeps a writer's memory small.
GROUP_ROWS = 1 << 20


def is_on_device(array: Any) -> bool:
    """Whether an array is one of a device."""
    return hasattr(array, "get")


def on_host(array: Any) -> Any:
    """An array of a device as one of the host; others as they are."""
    return array.get() if is_on_device(array) else array


def validate(array: pa.ChunkedArray) -> None:
    """Raise pyarrow.ArrowInvalid for data that do not hold together.

    Numbers of dictionary values that there are not, say, or text that ends outside memory, which Arrow takes from
    damaged files without a word.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        for chunk in array.chunks:
            chunk.validate()
            chunk.dictionary.validate(full=True)
            indices = chunk.indices
            # That each number of a value is below theirs is seen in a tenth of Arrow's time where none is missing.
            if chunk.null_count or not _between(indices.to_numpy(), len(chunk.dictionary)):
                chunk.validate(full=True)
        return
    # Times out of their range, those of a day beyond midnight, are values all the same.
    array.validate(full=not (pa.types.is_temporal(kind) or pa.types.is_decimal(kind)))


def _between(numbers: npt.NDArray[Any], stop: int) -> bool:
    """Whether these are all from 0 to below `stop`."""
    return len(numbers) == 0 or (numbers.min() >= 0 and numbers.max() < stop)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view that nothing is written to: kernels are compiled once for arrays that may be written to and others."""
    view = array.view()
    view.flags.writeable = False
    return view
