"""Numbers in arguments, and sizes of equivalence classes in whatever form they come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gpupif.errors import InputError
from gpupif.information import Sizes

if TYPE_CHECKING:
    import numpy.typing as npt


def is_whole(value: Any) -> bool:
    """Whether it is a whole number, also one written as 3e7."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return isinstance(value, int | np.integer) or float(value).is_integer()


def whole_number(argument: str, value: Any, of: str, least: int = 1) -> int:
    """A whole number of at least `least`; raises InputError otherwise. of: what it counts."""
    if not is_whole(value) or value < least:
        raise InputError(f"{argument}: expected a whole number of {of}, {least} or more; got {value!r}.")
    return int(value)


def share(argument: str, value: Any) -> float:
    """A number above 0 and up to 1; raises InputError otherwise."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number) or not 0 < value <= 1:
        percent = isinstance(value, int | float | np.number) and 1 < value <= 100
        raise InputError(
            f"{argument}: expected a number above 0 and up to 1, got {value!r}."
            + (" Divide percentages by 100." if percent else "")
        )
    return float(value)


def size_array(argument: str, given: Any) -> npt.NDArray[np.int64]:
    """Sizes of classes, one number each, from a list, an array or a Series; raises InputError for anything else."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InputError(f"{argument}: expected sizes of classes, a list of whole numbers; got {type(given).__name__}.")
    array = np.asarray(given if hasattr(given, "__array__") else list(given))
    if array.dtype.kind == "O" and array.ndim == 1 and all(map(is_whole, array)):
        # As nullable integers come from some versions of pandas.
        array = array.astype(np.float64 if max(array) >= 2**62 else np.int64)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf":
        shown = f"{array.ndim} dimensions" if array.ndim != 1 else "none" if array.size == 0 else f"{array[0]!r}"
        raise InputError(f"{argument}: expected the size of each class, a list of whole numbers; got {shown}.")
    wrong = np.flatnonzero(~((array >= 1) & (array < 2**62) & (array == np.floor(array))))
    if len(wrong):
        raise InputError(
            f"{argument}: expected whole numbers of rows from 1 to 2^62; got {array[wrong[0]].item()!r} "
            f"at position {int(wrong[0])}. Leave classes without rows out."
        )
    return array.astype(np.int64)


def histogram_of(class_sizes: Any, rows: int | None = None, argument: str = "class_sizes") -> dict[int, int]:
    """Size of an equivalence class to the number of classes of that size, ascending.

    class_sizes: the size of each class; or a mapping of size to number of classes; or `gpupif.information.Sizes`, which
    leaves classes of one row out, so that it needs `rows`, the rows of the table. Raises InputError for what is none.
    """
    if isinstance(class_sizes, Sizes):
        total = whole_number("rows", rows, "rows")
        found = dict(zip(class_sizes.sizes.tolist(), class_sizes.times.tolist(), strict=True))
        alone = total - sum(size * times for size, times in found.items())
        if alone < 0:
            raise InputError(f"rows: expected at least the {total - alone:,} rows of the classes, got {total:,}.")
        return ({1: alone} if alone else {}) | found
    if isinstance(class_sizes, Mapping):
        found = {}
        for size, times in class_sizes.items():
            number = whole_number(f"{argument}[{size!r}]", times, "classes of this size", 0)
            if number:
                found[whole_number(argument, size, "rows as the size of a class")] = number
        if not found:
            raise InputError(f"{argument}: expected at least one class, got none.")
    else:
        sizes, numbers = np.unique(size_array(argument, class_sizes), return_counts=True)
        found = dict(zip(sizes.tolist(), numbers.tolist(), strict=True))
    total = sum(size * times for size, times in found.items())
    if rows is not None and whole_number("rows", rows, "rows") != total:
        raise InputError(
            f"rows: expected the {total:,} rows that the classes have together, got {rows!r}. Leave it out."
        )
    return dict(sorted(found.items()))
