"""Invented tables: small ones to learn with, and a synthetic census of any size to try scoring on."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ..errors import InputError
from ..utils.validation import brief

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["census", "csf_example", "pif_example"]

MOST_ROWS = 10**12
MOST_COLUMNS = 200
CHUNK = 1 << 16  # rows; the codes of a chunk stay in the cache while its columns are drawn
ALWAYS = (1 << 32) - 1


def census(rows: int, seed: int = 0, columns: int = 10) -> pd.DataFrame:
    """Make a synthetic census: a row for each person, with skew and dependencies like those of a real census.

    No row describes a real person. All proportions are invented, though plausible. Persons are drawn independently of
    each other, so they do not form households. A seed gives the same table on every platform and with any number of
    cores. A table with fewer rows or columns is the beginning of a larger table with the same seed.

    Parameters
    ----------
    rows:
        Number of persons, from 1.
    seed:
        From 0 to 2**64 - 1. Default 0.
    columns:
        Number of columns, from 1 to 200. Default 10. The columns are region, age, sex, marital_status, education,
        occupation, birthplace, household_size, income_band, tenure; then industry, language, religion, dwelling_type,
        bedrooms, vehicles, commute_mode, internet, disability, health, citizenship, year_of_arrival; then survey items,
        item_23 and so on. Each item depends on one of the columns before it.

    Returns
    -------
    pandas.DataFrame
        (rows, columns), without missing values. Columns with labels are Categoricals with all their categories, also
        categories that do not occur. Ages (100 stands for 100 and over), household_size and other counts are int8.

    Raises
    ------
    InputError
        A number of rows or columns, or a seed, that is not a whole number in its range.

    """
    rows = _whole("rows", rows, 1, MOST_ROWS, "give the number of persons, such as 1_000_000.")
    seed = _whole("seed", seed, 0, (1 << 64) - 1, "give another seed, such as 0.")
    columns = _whole("columns", columns, 1, MOST_COLUMNS, "give the number of columns, such as 10.")
    return _frame(_codes(rows, seed, columns))


def pif_example() -> pd.DataFrame:
    """Return the invented table of the piflib manual: 7 rows, columns gender, name and eye_color."""
    import pandas as pd

    return pd.DataFrame(
        {
            "gender": ["male"] * 6 + ["female"],
            "name": ["Anton", "Bill", "Charlie", "Don", "Emil", "Emil", "Charlie"],
            "eye_color": ["blue", "green", "green", "green", "blue", "green", "green"],
        }
    )


def csf_example() -> pd.DataFrame:
    """Return the invented table that explains the cell surprise factor in the piflib manual: 9 rows, columns A, B."""
    import pandas as pd

    return pd.DataFrame({"A": list("aaabbcccc"), "B": list("ghigghhhi")})


def _whole(argument: str, value: object, least: int, most: int, remedy: str) -> int:
    """Return a whole number as an int; raise InputError for all else. True and 1.0 are not whole numbers."""
    from operator import index

    try:
        number = None if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        came = brief(value) if number is not None else f"{brief(value)} ({type(value).__name__})"
        raise InputError(f"{argument}: expected a whole number from {least} to {most}, got {came}; {remedy}")
    return number


class _Tables(NamedTuple):
    """A column as the kernel takes it; see `kernels/random_values.py`."""

    parents: NDArray[np.int64]
    shifts: NDArray[np.int32]
    keep: NDArray[np.uint32]
    other: NDArray[np.uint8]
    levels: int


@cache
def _tables(place: int) -> _Tables:
    """Return the column at a place: the places of its parents, and an alias table for each combination of groups."""
    import numpy as np

    from . import _census_model as model

    column = model.column(place)
    shifts = np.zeros((len(column.given), 128), dtype=np.int32)
    for parent, given in enumerate(column.given):
        cells = int(np.prod(column.weights.shape[parent + 1 :]))  # from the tables of a group to the next ones
        shifts[parent, : len(given.groups)] = np.multiply(given.groups, cells)
    levels = len(column.levels)
    pairs = [_alias(weights) for weights in column.weights.reshape(-1, levels).tolist()]
    return _Tables(
        parents=np.array([model.place_of(given.column) for given in column.given], dtype=np.int64),
        shifts=shifts,
        keep=np.array([keep for keep, _ in pairs], dtype=np.uint32).ravel(),
        other=np.array([other for _, other in pairs], dtype=np.uint8).ravel(),
        levels=levels,
    )


def _alias(weights: list[int]) -> tuple[list[int], list[int]]:
    """Return the alias table of whole weights, by Vose's method in whole numbers.

    The table is, for each cell, in how many of 2**32 cases it gives its own level, and the level that it gives
    otherwise. A level of weight 0 is never drawn.
    """
    total, levels = sum(weights), len(weights)
    keep, other = [ALWAYS] * levels, list(range(levels))
    share = [weight * levels for weight in weights]  # a cell holds `total`
    poor = [level for level in range(levels) if share[level] < total]
    rich = [level for level in range(levels) if share[level] >= total]
    while poor:
        taker, giver = poor.pop(), rich[-1]
        keep[taker], other[taker] = (share[taker] << 32) // total, giver
        share[giver] -= total - share[taker]
        if share[giver] < total:
            poor.append(rich.pop())
    return keep, other


def _codes(rows: int, seed: int, columns: int) -> NDArray[np.int8]:
    """Draw the codes of all columns, (columns, rows), in chunks of rows by several threads."""
    import numpy as np

    from gpupif.kernels.random_values import draw_column

    from ..rows.threads import Workers

    tables = [_tables(place) for place in range(columns)]
    codes = np.empty((columns, rows), dtype=np.int8)

    def draw(begin: int) -> None:
        for place, column in enumerate(tables):
            draw_column(codes, place, begin, min(begin + CHUNK, rows), np.uint64(seed), *column)

    with Workers() as workers:
        workers.run(draw, [(begin,) for begin in range(0, rows, CHUNK)])
    return codes


def _frame(codes: NDArray[np.int8]) -> pd.DataFrame:
    """Return the table of the codes, without copying them."""
    import pandas as pd

    from . import _census_model as model

    data: dict[str, object] = {}
    for place, drawn in enumerate(codes):
        name, levels, _, _ = model.column(place)
        if isinstance(levels, range):
            data[name] = drawn + drawn.dtype.type(levels.start) if levels.start else drawn
        else:
            data[name] = pd.Categorical.from_codes(drawn, dtype=pd.CategoricalDtype(list(levels)))
    return pd.DataFrame(data, copy=False)
