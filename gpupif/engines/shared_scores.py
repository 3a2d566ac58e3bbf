"""Scores that are stored once for all rows that share them, and are copied to the rows on request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import spread

from ..rows.threads import Workers

# Most measures that one call of the kernel `spread` copies to rows.
AT_ONCE = 20
# The most rows that NumPy takes sooner than a call of a kernel begins.
FEW_ROWS = 256


class ScoredColumnScores(NamedTuple):
    """The scores of one scored column, before weighting. Row i has the scores `scores[places[number[i]]]`.

    scores: (places, measures) float64. places: (distinct rows,).
    number: (rows,). The number of each row's distinct row.
    """

    scores: npt.NDArray[np.float64]
    places: npt.NDArray[Any]
    number: npt.NDArray[Any]


class Taken(NamedTuple):
    """The derivation of one measure from shared scores: the column `slot` of the scores, times `factor`, as `dtype`."""

    slot: int
    factor: float
    dtype: np.dtype[Any]


@dataclass(frozen=True, eq=False)
class SharedScores:
    """The scores of one measure in all rows: an array (scored columns, rows) whose items are computed on request.

    shared: by scored column, the scores that rows share. taken: by scored column, the derivation of the measure.
    dtype: the type of the scores.
    """

    shared: Sequence[ScoredColumnScores]
    taken: Sequence[Taken]
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the array: (scored columns, rows)."""
        return len(self.shared), len(self.shared[0].number)

    def __len__(self) -> int:
        return len(self.shared)

    def all_rows(self) -> npt.NDArray[Any]:
        """Return the whole array."""
        with Workers() as workers:
            return take_rows({"": self}, 0, self.shape[1], workers)[""]  # type: ignore[no-any-return]


def take_rows(arrays: Mapping[str, Any], start: int, stop: int, workers: Workers) -> dict[str, Any]:
    """Return the rows from start to stop of all arrays, by name. arrays: scores (scored columns, rows) of one shape."""
    size = stop - start
    made = {
        name: np.empty((len(array), size), array.dtype) if isinstance(array, SharedScores) else array[:, start:stop]
        for name, array in arrays.items()
    }
    shared = {name: array for name, array in arrays.items() if isinstance(array, SharedScores)}
    scored_columns = len(next(iter(shared.values()))) if shared else 0

    def take(scored_column: int, first: int, last: int) -> None:
        outs = {name: made[name][scored_column, first:last] for name in shared}
        _put_scored_column(shared, scored_column, start + first, outs)

    workers.run(
        take, [(scored_column, *edges) for scored_column in range(scored_columns) for edges in workers.ranges(size)]
    )
    return made


def take_scored_column(arrays: Mapping[str, Any], scored_column: int, start: int, stop: int) -> dict[str, Any]:
    """Return the rows from start to stop of one scored column of all arrays, by name, computed in this thread."""
    shared = {name: array for name, array in arrays.items() if isinstance(array, SharedScores)}
    made = {name: np.empty(stop - start, array.dtype) for name, array in shared.items()}
    _put_scored_column(shared, scored_column, start, made)
    return {name: made[name] if name in made else array[scored_column, start:stop] for name, array in arrays.items()}


def multiples(arrays: Mapping[str, Any], scored_column: int) -> dict[str, tuple[str, float]]:
    """Return the scores that equal other scores times a factor: by name, the name of the other scores, and the factor.

    Only for float64: narrower scores are rounded after the multiplication.
    """
    plain: dict[tuple[int, int], str] = {}
    by_name: dict[str, tuple[str, float]] = {}
    for name, array in arrays.items():
        if not isinstance(array, SharedScores) or array.dtype != np.float64:
            continue
        taken, place = array.taken[scored_column], (id(array.shared[scored_column]), array.taken[scored_column].slot)
        if taken.factor == 1:
            plain.setdefault(place, name)
        elif place in plain and taken.factor:
            by_name[name] = plain[place], taken.factor
    return by_name


def found_together(arrays: Mapping[str, Any], scored_column: int) -> ScoredColumnScores | None:
    """Return the shared scores of a scored column if all arrays are derived from them, else None."""
    first, *others = arrays.values()
    if not all(
        isinstance(array, SharedScores) and array.shared[scored_column] is first.shared[scored_column]
        for array in others
    ):
        return None
    return first.shared[scored_column] if isinstance(first, SharedScores) else None


def _put_scored_column(
    shared: Mapping[str, SharedScores], scored_column: int, start: int, outs: Mapping[str, npt.NDArray[Any]]
) -> None:
    """Fill the arrays in `outs`, by name, with the scores of one scored column from row `start` on."""
    for _, names in groupby(shared, lambda name: id(shared[name].shared[scored_column])):
        alike = list(names)
        taken = [shared[name].taken[scored_column] for name in alike]
        put_rows(shared[alike[0]].shared[scored_column], taken, start, [outs[name] for name in alike])


def put_rows(shared: ScoredColumnScores, taken: Sequence[Taken], start: int, outs: Sequence[npt.NDArray[Any]]) -> None:
    """Fill arrays of one length with scores of the rows from `start` on. taken: the derivation of each array."""
    number = shared.number[start : start + (len(outs[0]) if outs else 0)]
    if len(number) <= FEW_ROWS:
        places = shared.places[number]
        for one, out in zip(taken, outs, strict=True):
            out[:] = one.factor * shared.scores[places, one.slot]
        return
    where = number, shared.places, np.empty(spread.CHUNK, shared.places.dtype)
    for types, picked in _by_type(taken):
        slots = tuple(np.array([taken[k].slot for k in some], np.int64) for some in picked)
        factors = np.array([taken[k].factor for some in picked for k in some])
        arrays = (padded([outs[k] for k in some], kind) for kind, some in zip(types, picked, strict=True))
        spread.spread(shared.scores, slots, factors, where, *arrays)


def _by_type(taken: Sequence[Taken]) -> Iterator[tuple[tuple[Any, Any], tuple[list[int], list[int]]]]:
    """Yield two types, and the places in `taken` of either type, at most `AT_ONCE` together.

    The first is the first floating type in `taken`, the second another type: one kernel call writes two types.
    """
    first = next((one.dtype for one in taken if one.dtype.kind == "f"), np.dtype(np.float64))
    mine = [place for place, one in enumerate(taken) if one.dtype == first]
    for kind in sorted({one.dtype for one in taken} - {first}, key=str) or [np.dtype(np.int64)]:
        several = mine + [place for place, one in enumerate(taken) if one.dtype == kind]
        for start in range(0, len(several), AT_ONCE):
            some = several[start : start + AT_ONCE]
            yield (first, kind), ([k for k in some if k in mine], [k for k in some if k not in mine])
        mine = []


def padded(outs: Sequence[npt.NDArray[Any]], dtype: Any) -> tuple[npt.NDArray[Any], ...]:
    """Return `AT_ONCE` arrays, as kernels require: the given arrays, and then empty arrays."""
    return (*outs, *(np.empty(0, dtype),) * (AT_ONCE - len(outs)))
