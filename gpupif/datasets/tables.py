"""Small tables to learn with, and a synthetic census of any size to try scoring on. All of it is invented."""

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
CHUNK = 1 << 16  # rows; the codes of a chunk stay in the cache from a parent's column to its children's
ALWAYS = (1 << 32) - 1


def census(rows: int, seed: int = 0, columns: int = 10) -> pd.DataFrame:
    """A synthetic census: one row per person, with the skew and the dependencies that a real one shows.

    No row describes a real person; all proportions are invented, though plausible. Persons are drawn independently
    of each other, so they do not join up into households.

    rows: how many persons, from 1. seed: from 0 to 2**64 - 1. columns: how many columns, from 1 to 200: region, age,
    sex, marital_status, education, occupation, birthplace, household_size, income_band and tenure; then industry,
    language, religion, dwelling_type, bedrooms, vehicles, commute_mode, internet, disability, health, citizenship,
    year_of_arrival; then survey items, item_23 and so on. Each item depends on one of the columns before it.

    Returns a DataFrame (rows, columns). Columns with labels are Categoricals, always with all their categories, in
    use or not; age (100 stands for 100 and over), household_size and other counts are int8. The same seed gives the
    same table on every platform, whatever the number of cores, and fewer rows or columns of it give its beginning.

    Raises InputError for a count or seed that is no whole number or out of range.
    """
    rows = _whole("rows", rows, 1, MOST_ROWS, "give the number of persons, e.g. census(1_000_000).")
    seed = _whole("seed", seed, 0, (1 << 64) - 1, "give another seed, e.g. seed=0.")
    columns = _whole("columns", columns, 1, MOST_COLUMNS, "give the number of columns, e.g. columns=10.")
    return _frame(_codes(rows, seed, columns))


def pif_example() -> pd.DataFrame:
    """The table of the piflib manual, invented: 7 rows, columns gender, name and eye_color."""
    import pandas as pd

    return pd.DataFrame(
        {
            "gender": ["male"] * 6 + ["female"],
            "name": ["Anton", "Bill", "Charlie", "Don", "Emil", "Emil", "Charlie"],
            "eye_color": ["blue", "green", "green", "green", "blue", "green", "green"],
        }
    )


def csf_example() -> pd.DataFrame:
    """The table with which the piflib manual explains the cell surprise factor, invented: 9 rows, columns A and B."""
    import pandas as pd

    return pd.DataFrame({"A": list("aaabbcccc"), "B": list("ghigghhhi")})


def _whole(argument: str, value: object, least: int, most: int, remedy: str) -> int:
    """The value as an int, or InputError; numpy's whole numbers count, True and 1.0 do not."""
    from operator import index

    try:
        number = None if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        came = f"{brief(value)} ({type(value).__name__})"
        raise InputError(f"{argument}: expected a whole number from {least} to {most}, got {came}; {remedy}")
    return number


class _Tables(NamedTuple):
    """A column as the kernel wants it; see `kernels/census.py`."""

    parents: NDArray[np.int64]
    shifts: NDArray[np.int32]
    keep: NDArray[np.uint32]
    other: NDArray[np.uint8]
    levels: int


@cache
def _tables(place: int) -> _Tables:
    """The column in the given place: where its parents stand, and one alias table per combination of their groups."""
    import numpy as np

    from . import _census_model as model

    column = model.column(place)
    shifts = np.zeros((len(column.given), 128), dtype=np.int32)
    for parent, given in enumerate(column.given):
        cells = int(np.prod(column.weights.shape[parent + 1 :]))  # from one group's tables to the next group's
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
    """Alias table of whole weights, by Vose's method in whole numbers.

    For each cell, in how many of 2**32 cases it keeps its own level, and the level it gives otherwise. A level of
    weight 0 is never drawn.
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
    """The codes of all columns (columns, rows), drawn in chunks of rows by several threads."""
    import numpy as np

    from gpupif.kernels.census import draw_column

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
    """The table for the codes, without copying them."""
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
