"""Scores that stand once for all rows which have the same: brought to rows at once, or when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import spread

from ..rows.threads import Workers

# Measures that are brought to rows at a time.
AT_ONCE = 20


class ScoredColumnScores(NamedTuple):
    """Scores of one scored column (places, what is scored), before weighting: those of row i stand at
    places[number[i]].
    """

    scores: npt.NDArray[np.float64]
    places: npt.NDArray[Any]
    number: npt.NDArray[Any]


class Taken(NamedTuple):
    """What is taken of scores: that at `slot` of what is scored, times `factor`, as numbers of type `dtype`."""

    slot: int
    factor: float
    dtype: np.dtype[Any]


@dataclass(frozen=True, eq=False)
class SharedScores:
    """One measure's scores of all rows, as an array (scored columns, rows) whose rows are made when they are asked for.

    found: by scored column; taken: what of that. dtype: of the scores.
    """

    found: Sequence[ScoredColumnScores]
    taken: Sequence[Taken]
    dtype: np.dtype[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """(scored columns, rows)."""
        return len(self.found), len(self.found[0].number)

    def __len__(self) -> int:
        return len(self.found)

    def all_rows(self) -> npt.NDArray[Any]:
        """The array."""
        with Workers() as workers:
            return take_rows({"": self}, 0, self.shape[1], workers)[""]  # type: ignore[no-any-return]


def take_rows(arrays: Mapping[str, Any], start: int, stop: int, workers: Workers) -> dict[str, Any]:
    """The rows start to stop of scores (scored columns, rows) of one shape by name, all in one go."""
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
    """As `take_rows`, of one scored column, in the calling thread."""
    shared = {name: array for name, array in arrays.items() if isinstance(array, SharedScores)}
    made = {name: np.empty(stop - start, array.dtype) for name, array in shared.items()}
    _put_scored_column(shared, scored_column, start, made)
    return {name: made[name] if name in made else array[scored_column, start:stop] for name, array in arrays.items()}


def multiples(arrays: Mapping[str, Any], scored_column: int) -> dict[str, tuple[str, float]]:
    """Scores by name that are others times a factor: of which, by name, and by which.

    Of 64 bits, which are multiplied before they are rounded to others.
    """
    plain: dict[tuple[int, int], str] = {}
    found: dict[str, tuple[str, float]] = {}
    for name, array in arrays.items():
        if not isinstance(array, SharedScores) or array.dtype != np.float64:
            continue
        taken, place = array.taken[scored_column], (id(array.found[scored_column]), array.taken[scored_column].slot)
        if taken.factor == 1:
            plain.setdefault(place, name)
        elif place in plain and taken.factor:
            found[name] = plain[place], taken.factor
    return found


def found_together(arrays: Mapping[str, Any], scored_column: int) -> ScoredColumnScores | None:
    """Where the scores of a scored column stand, if those of all arrays stand there."""
    first, *others = arrays.values()
    if not all(
        isinstance(array, SharedScores) and array.found[scored_column] is first.found[scored_column] for array in others
    ):
        return None
    return first.found[scored_column] if isinstance(first, SharedScores) else None


def _put_scored_column(
    shared: Mapping[str, SharedScores], scored_column: int, start: int, outs: Mapping[str, npt.NDArray[Any]]
) -> None:
    """Fill arrays by name with the scores of one scored column from row `start` on."""
    for _, names in groupby(shared, lambda name: id(shared[name].found[scored_column])):
        several = list(names)
        put_rows(
            shared[several[0]].found[scored_column],
            [shared[name].taken[scored_column] for name in several],
            start,
            [outs[name] for name in several],
        )


def put_rows(found: ScoredColumnScores, taken: Sequence[Taken], start: int, outs: Sequence[npt.NDArray[Any]]) -> None:
    """Fill arrays of one length with scores of the rows from `start` on, each with what is taken for it."""
    number = found.number[start : start + (len(outs[0]) if outs else 0)]
    where = number, found.places, np.empty(spread.CHUNK, found.places.dtype)
    for types, several in _by_type(taken):
        slots = tuple(np.array([taken[k].slot for k in some], np.int64) for some in several)
        factors = np.array([taken[k].factor for some in several for k in some])
        arrays = (padded([outs[k] for k in some], kind) for kind, some in zip(types, several, strict=True))
        spread.spread(found.scores, slots, factors, where, *arrays)


def _by_type(taken: Sequence[Taken]) -> Iterator[tuple[tuple[Any, Any], tuple[list[int], list[int]]]]:
    """What is taken, by place, a few at a time: as floats of the first type of these, and as one other type."""
    first = next((one.dtype for one in taken if one.dtype.kind == "f"), np.dtype(np.float64))
    mine = [place for place, one in enumerate(taken) if one.dtype == first]
    for kind in sorted({one.dtype for one in taken} - {first}, key=str) or [np.dtype(np.int64)]:
        several = mine + [place for place, one in enumerate(taken) if one.dtype == kind]
        for start in range(0, len(several), AT_ONCE):
            some = several[start : start + AT_ONCE]
            yield (first, kind), ([k for k in some if k in mine], [k for k in some if k not in mine])
        mine = []


def padded(outs: Sequence[npt.NDArray[Any]], dtype: Any) -> tuple[npt.NDArray[Any], ...]:
    """As many as kernels take."""
    return (*outs, *(np.empty(0, dtype),) * (AT_ONCE - len(outs)))
