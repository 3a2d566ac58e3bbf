"""The sizes of equivalence classes, in each form in which a caller may give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..utils.information import Sizes
from ..utils.validation import MOST, brief, is_whole, whole_number
from .risk_threshold import KeyedSums


def size_array(argument: str, given: Any, least: int = 1) -> npt.NDArray[np.int64]:
    """Return sizes of classes, one number for each, from a list, an array or a Series.

    least: int, 0 or 1. The lowest size that is allowed. Default 1.

    Raises InputError for anything else, and if no class has a row.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InputError(f"{argument}: expected sizes of classes, a list of whole numbers; got {type(given).__name__}.")
    values = given if hasattr(given, "__array__") else list(given)
    array = np.asarray(values)
    if array.dtype.kind == "O" and array.ndim == 1 and all(map(is_whole, array)):
        # Nullable integers of some versions of pandas, and numbers beyond 64 bits in lists, come as objects.
        values, array = list(array), np.array([min(max(int(value), 0), MOST) for value in array])
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf":
        came = f"{array.ndim} dimensions" if array.ndim != 1 else "none" if array.size == 0 else brief(array[0])
        raise InputError(f"{argument}: expected the size of each class, a list of whole numbers; got {came}.")
    wrong = ~((array >= least) & (array < MOST) & (array == np.floor(array)))
    if isinstance(values, list):
        # NumPy turns booleans among numbers into numbers, so booleans are looked for in the list.
        wrong |= np.array([isinstance(value, bool | np.bool_) for value in values])
    if wrong.any():
        place = int(np.argmax(wrong))
        came = brief(values[place] if isinstance(values, list) else array[place].item())
        hint = " Leave classes without rows out." if least else ""
        raise InputError(
            f"{argument}: expected whole numbers of rows from {least} to 2^62; got {came} at position {place}.{hint}"
        )
    sizes = array.astype(np.int64)
    if not sizes.any():
        raise InputError(f"{argument}: expected a class of at least one row, got classes without rows only.")
    if float(np.sum(sizes, dtype=np.float64)) > MOST:
        raise InputError(f"{argument}: expected classes of at most 2^62 rows together; got more.")
    return sizes


def histogram_of(class_sizes: Any, rows: int | None = None) -> dict[int, int]:
    """Return the number of equivalence classes of each size, by size, ascending.

    class_sizes: the size of each class; or a mapping of size to number of classes; or `gpupif.utils.information.Sizes`.
    rows: int. Rows of the table. Needed with `Sizes`, which leaves classes of one row out.

    Raises InputError for anything else.
    """
    if isinstance(class_sizes, Sizes):
        total = whole_number("rows", rows, "rows")
        histogram = dict(zip(class_sizes.sizes.tolist(), class_sizes.multiplicities.tolist(), strict=True))
        alone = total - sum(size * classes for size, classes in histogram.items())
        if alone < 0:
            raise InputError(f"rows: expected at least the {total - alone:,} rows of the classes, got {total:,}.")
        return ({1: alone} if alone else {}) | histogram
    if isinstance(class_sizes, Mapping):
        histogram = {}
        for size, classes in class_sizes.items():
            number = whole_number(f"class_sizes[{brief(size)}]", classes, "classes of this size", 0)
            if number:
                histogram[whole_number("class_sizes", size, "rows as the size of a class")] = number
        if not histogram:
            raise InputError("class_sizes: expected at least one class, got none.")
    else:
        sizes, numbers = np.unique(size_array("class_sizes", class_sizes), return_counts=True)
        histogram = dict(zip(sizes.tolist(), numbers.tolist(), strict=True))
    total = sum(size * classes for size, classes in histogram.items())
    if total > MOST:
        raise InputError("class_sizes: expected classes of at most 2^62 rows together; got more.")
    if rows is not None and whole_number("rows", rows, "rows") != total:
        raise InputError(
            f"rows: expected the {total:,} rows that the classes have together, got {rows!r}. Leave it out."
        )
    return dict(sorted(histogram.items()))


class SizeBand(NamedTuple):
    """Rows in classes of `least` to `most` rows."""

    least: int
    most: int
    rows: int


@dataclass(frozen=True)
class ClassSizes:
    """The rows of a table by the size of their equivalence class.

    rows_of_size: mapping of class size to rows, ascending.
    overlapping: bool. True if each row has a class of its own, as when missing values match every value. Classes then
        overlap and cannot be counted.
    """

    rows_of_size: Mapping[int, int]
    overlapping: bool = False

    @classmethod
    def from_classes(cls, classes_of_size: Mapping[int, int]) -> ClassSizes:
        """Return sizes of classes that do not overlap. classes_of_size: the number of classes by size, ascending."""
        return cls({size: size * classes for size, classes in classes_of_size.items()})

    @classmethod
    def from_rows(cls, rows_of_size: Sizes, rows: int, overlapping: bool) -> ClassSizes:
        """Return sizes of classes. rows_of_size: rows by class size, without rows that are alone in their class.

        rows: int. All rows of the table.
        """
        rows_by_size = dict(zip(rows_of_size.sizes.tolist(), rows_of_size.multiplicities.tolist(), strict=True))
        alone = rows - sum(rows_by_size.values())
        return cls(({1: alone} if alone else {}) | rows_by_size, overlapping)

    @property
    def rows(self) -> int:
        """The number of all rows."""
        return sum(self.rows_of_size.values())

    @property
    def smallest(self) -> int:
        """The rows of the smallest class."""
        return min(self.rows_of_size)

    def bands(self) -> list[SizeBand]:
        """Return the rows by the size of their class, in bands up to 4, 9, 19, 49, 99, 199 and so on."""
        rows_of_band: dict[tuple[int, int], int] = {}
        for size, rows in self.rows_of_size.items():
            decade = 10 ** (len(str(size)) - 1)
            digit = max(one for one in (1, 2, 5) if one * decade <= size)
            most = {1: 2, 2: 5, 5: 10}[digit] * decade - 1
            band = (size, size) if size < 5 else (digit * decade, most)
            rows_of_band[band] = rows_of_band.get(band, 0) + rows
        return [SizeBand(*band, rows) for band, rows in rows_of_band.items()]

    def rows_of_risk(self) -> KeyedSums:
        """Return the number of rows by their risk, 1 / size."""
        sizes, rows = (np.array(list(numbers), np.int64) for numbers in zip(*self.rows_of_size.items(), strict=True))
        return KeyedSums.from_amounts(1 / sizes, rows)

    @property
    def classes_of_size(self) -> dict[int, int]:
        """The number of classes of each size, if classes do not overlap."""
        assert not self.overlapping
        return {size: rows // size for size, rows in self.rows_of_size.items()}
