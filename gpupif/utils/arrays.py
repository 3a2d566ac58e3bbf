"""Arrays of NumPy, Arrow and devices: brought to the host, and checked to hold together."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import pyarrow as pa

# Rows of a row group of a Parquet file at most: what is encoded at once, which keeps a writer's memory small.
GROUP_ROWS = 1 << 20


def on_host(array: Any) -> Any:
    """An array of a device as one of the host; others as they are."""
    return array.get() if hasattr(array, "get") else array


def validate(array: pa.ChunkedArray) -> None:
    """Raise pyarrow.ArrowInvalid for data that do not hold together.

    Numbers of dictionary values that there are not, say, or text that ends outside memory, which Arrow takes from
    damaged files without a word.
    """
    kind = array.type
    # Times out of their range, those of a day beyond midnight, are values all the same.
    array.validate(full=not (pa.types.is_temporal(kind) or pa.types.is_decimal(kind)))


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view that nothing is written to: kernels are compiled once for arrays that may be written to and others."""
    view = array.view()
    view.flags.writeable = False
    return view
