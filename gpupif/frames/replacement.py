"""What stands in the place of a column of a frame."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt
import pyarrow as pa


class Replacement(NamedTuple):
    """What stands in the place of a column: codes of rows, `len(labels)` where a value is missing, and their labels.

    before: the type of the values that the column had, see `encoding.plain`. counts: rows by code, missing ones last;
    None where they are to be found.
    """

    codes: npt.NDArray[Any]
    labels: pa.Array
    before: pa.DataType
    counts: npt.NDArray[Any] | None = None
