"""What stands in the place of a column of a frame."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpupif.kernels import codes as kernels

from ..utils.arrays import read_only


class Replacement(NamedTuple):
    """What stands in the place of a column: codes of rows, and labels.

    before: the type of the values that the column had, see `encoding.plain_values`. places: by code the place of its
    label, `len(labels)` where a value is missing; None: the codes are these. counts: rows by place, missing ones last;
    None where they are to be found.
    """

    codes: npt.NDArray[Any]
    labels: pa.Array
    before: pa.DataType
    counts: npt.NDArray[Any] | None = None
    places: npt.NDArray[np.int64] | None = None

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """Which rows have no value."""
        absent = np.zeros(len(self.labels) + 1, np.bool_)
        absent[-1] = True
        return self.taken(absent)

    def row_places(self, kind: Any) -> npt.NDArray[Any]:
        """The place of each row's label, as numbers of a type."""
        return self.renumbered(np.arange(len(self.labels) + 1), kind)

    def renumbered(self, numbers: npt.NDArray[np.int64], kind: Any) -> npt.NDArray[Any]:
        """For each row the one of whole numbers that is at the place of its label; of a type."""
        by_code = numbers if self.places is None else numbers[self.places]
        found = np.empty(len(self.codes), kind)
        kernels.recode(read_only(self.codes), 0, by_code, found)
        return found

    def taken(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """For each row the one of some values that is at the place of its label."""
        return np.take(values if self.places is None else values[self.places], self.codes)
