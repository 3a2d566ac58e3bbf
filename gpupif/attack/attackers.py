"""Kinds of attackers: who knows a list of columns, and who knows any few columns (`AnyKnown`).

For the second kind, this module has the sets of columns to score, all or a drawn sample, and the names of the scores.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from ..engines.base import KnownSubset
from ..errors import InputError, listed
from ..measures import Measure
from ..utils.display import as_text, plural
from ..utils.validation import MOST, as_list, brief, whole_number

# Most subsets that are scored, over all scored columns, and most distinct rows of all their tables together.
MOST_SUBSETS, MOST_VISITS = 2 * 10**6, 10**13
# The combinations of each cell's scores over all subsets, in the order of the outputs.
AGGREGATES = ("worst", "mean")


@dataclass(frozen=True)
class AnyKnown:
    """Any attacker who knows a number of columns: an argument ``known`` of `gpupif.score`, or an item of ``attackers``.

    A bare number, ``known=2``, is ``AnyKnown(2)``.

    Parameters
    ----------
    known:
        How many columns the attacker knows, r: a whole number from 0.
    among:
        The columns of which these are any, but not the scored one; default all that are scored.
    subsets, seed:
        Score only a sample of so many of the subsets of r columns for each scored one (all where there are no more),
        different ones, drawn at random by a seed, a whole number; the same each time. Default: all.

    Raises
    ------
    InputError
        Numbers that are out of range, or what names no column for ``among``.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"sex": list("ffmm"), "age": [1, 2, 2, 2], "home": list("nnns"), "ill": list("yyny")})
    >>> known = gpupif.AnyKnown(1, among=["sex", "age", "home"])
    >>> scores = gpupif.score(people, "posterior", columns=["ill"], known=known)
    >>> scores.posterior["ill"].tolist(), scores.subsets
    ([1.0, 1.0, 0.5, 1.0], 3 subsets of 1 column for each column)

    """

    known: int
    among: Sequence[Hashable] | None = field(default=None, kw_only=True)
    subsets: int | None = field(default=None, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        checked = {
            "known": how_many("known", self.known),
            "among": None if self.among is None else tuple(as_list("among", self.among)),
            "subsets": None if self.subsets is None else whole_number("subsets", self.subsets, "subsets"),
            "seed": whole_number("seed", self.seed, "", 0, most=2**64),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def pool(self) -> Sequence[Hashable] | None:
        """The columns that the attacker may know; None: all that are scored."""
        return () if self.known == 0 else self.among


def how_many(argument: str, given: Any) -> int:
    """Return how many columns an attacker knows, checked; raises InputError."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        raise InputError(
            f"{argument}: expected a list of column names, or how many of them as a whole number, 2 say; got "
            f"{brief(given)}."
        )
    if not 0 <= given <= MOST:
        raise InputError(f"{argument}: expected columns, or how many of them, 0 or more; got {brief(given)}.")
    return int(given)


# The knowledge of an attacker: columns (None: all that are scored), or any few of some columns.
Known = Sequence[Hashable] | AnyKnown | None


# Columns that are named in a line about an attacker.
NAMED = 12


def attacker_line(known: Known, scored: Sequence[Hashable]) -> str:
    """Return a sentence about the knowledge of an attacker. scored: the columns whose cells are scored."""
    if isinstance(known, AnyKnown):
        pool = None if known.pool is None else list(known.pool)
        several = f"any {known.known} {'scored columns' if pool is None else f'of {listed(pool, NAMED, as_text)}'}"
        return f"The attacker knows {several if known.known else 'nothing'}."
    if known is None or {*known} == {*scored}:
        return "The attacker knows every other scored column."
    return f"The attacker knows {listed(list(known), NAMED, as_text) or 'nothing'}."


def among_of(argument: str) -> str:
    """Return the name, in messages, of the argument with the columns of which an attacker knows any few.

    argument: the name of the attacker in messages.
    """
    return "among" if argument == "known" else f"{argument}: among"


def check_known(argument: str, asked: AnyKnown, scored_columns: Sequence[Hashable], pool: Sequence[Hashable]) -> None:
    """Raise InputError if a scored column has fewer other columns in the pool than the attacker knows.

    argument: the name of `asked` in messages.
    """
    others = min(len(pool) - (name in pool) for name in scored_columns)
    if asked.known > others:
        where = "scored" if asked.among is None else "named in among="
        if not others:
            raise InputError(
                f"{argument}: expected other columns of which the attacker knows any {asked.known}, got a column "
                f"beside which none is {where}. Name columns that the attacker may know any of, with among=."
            )
        raise InputError(
            f"{argument}: expected at most {others}, the number of other columns {where}, got {asked.known}. Give a "
            "lower number, or name more columns that the attacker may know any of, with among=."
        )


@dataclass(frozen=True)
class KnownSubsets:
    """The subsets of columns that the attackers of `known=r` know; ``scores.subsets``.

    known: r. possible, scored: by scored column how many subsets there are, and how many were scored. sampled: whether
    these are fewer. seed: by which they were drawn.
    """

    known: int
    possible: dict[Hashable, int]
    scored: dict[Hashable, int]
    sampled: bool
    seed: int
    names: Sequence[Hashable]
    sets: Sequence[KnownSubset]

    def for_column(self, column: Hashable) -> list[tuple[Hashable, ...]]:
        """Return the subsets that were scored for a column, each in the order of the table."""
        if column not in self.scored:
            raise InputError(
                f"subsets: column {column!r} was not scored. Scored are {', '.join(map(str, self.scored))}."
            )
        return [tuple(self.names[other] for other in others) for others in self.places_of(self.names.index(column))]

    def places_of(self, scored_column: int) -> list[tuple[int, ...]]:
        """Return the subsets that were scored for a column, as places among the columns used."""
        return [
            tuple(other for other in one.columns if other != scored_column)
            for one in self.sets
            if scored_column in one.scored_columns
        ]

    def __repr__(self) -> str:
        low, high = min(self.scored.values()), max(self.scored.values())
        number = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        drawn = f", drawn of {max(self.possible.values()):,} (seed {self.seed})" if self.sampled else ""
        sets = f"{number} {plural(high, 'subset')} of {self.known} {plural(self.known, 'column')}"
        return f"{sets} for each column{drawn}"

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of subsets, ready for JSON."""
        return {
            "known": self.known,
            "possible": {str(name): number for name, number in self.possible.items()},
            "scored": {str(name): number for name, number in self.scored.items()},
            "sampled": self.sampled,
            "seed": self.seed if self.sampled else None,
        }


def choose_subsets(
    asked: AnyKnown, names: Sequence[Hashable], scored_columns: Sequence[int], pool: Sequence[int], rows: int
) -> KnownSubsets:
    """Return the sets of columns to score, in ascending order, from columns of the pool.

    A sample has `asked.subsets` distinct subsets for each scored column, and all such samples are equally likely. The
    samples of two scored columns depend on each other, because a set of r + 1 columns serves several scored columns.
    Raise InputError if there are too many sets to score.

    names: the columns used. scored_columns, pool: places among the columns used. rows: rows of the table.
    """
    size = asked.known
    possible = {scored_column: math.comb(len(pool) - (scored_column in pool), size) for scored_column in scored_columns}
    scored = {
        scored_column: number if asked.subsets is None else min(number, asked.subsets)
        for scored_column, number in possible.items()
    }
    _check_work(asked, sum(possible.values()), sum(scored.values()), len(scored_columns), rows)
    inside, outside = sorted(t for t in scored_columns if t in pool), sorted(t for t in scored_columns if t not in pool)
    served: dict[tuple[int, ...], list[int]] = {}
    source = random.Random(asked.seed)
    if inside:
        left = {scored_column: scored[scored_column] for scored_column in inside}
        for columns in _in_turn(sorted(pool), size + 1, scored != possible, source):
            mine = [scored_column for scored_column in columns if left.get(scored_column)]
            for scored_column in mine:
                left[scored_column] -= 1
            if mine:
                served[columns] = mine
            if not any(left.values()):
                break
    if outside:
        left_outside = scored[outside[0]]
        for known in _in_turn(sorted(pool), size, scored != possible, source):
            for scored_column in outside:
                served.setdefault(tuple(sorted((*known, scored_column))), []).append(scored_column)
            left_outside -= 1
            if not left_outside:
                break
    return KnownSubsets(
        size,
        {names[scored_column]: possible[scored_column] for scored_column in scored_columns},
        {names[scored_column]: scored[scored_column] for scored_column in scored_columns},
        scored != possible,
        asked.seed,
        names,
        [KnownSubset(columns, tuple(sorted(mine))) for columns, mine in sorted(served.items())],
    )


def _in_turn(pool: Sequence[int], size: int, drawn: bool, source: random.Random) -> Iterator[tuple[int, ...]]:
    """Yield all sets of `size` columns, each once. drawn: in random order; all orders are equally likely."""
    if not drawn:
        yield from combinations(pool, size)
    elif math.comb(len(pool), size) <= MOST_SUBSETS:
        every = list(combinations(pool, size))
        source.shuffle(every)
        yield from every
    else:
        # There are more than MOST_SUBSETS sets, so few are drawn twice.
        seen: set[tuple[int, ...]] = set()
        while True:
            columns = tuple(sorted(source.sample(pool, size)))
            if columns not in seen:
                seen.add(columns)
                yield columns


def _check_work(asked: AnyKnown, possible: int, scored: int, scored_columns: int, rows: int) -> None:
    """Raise InputError if there are more subsets than can be scored. rows: rows of the table."""
    most = min(MOST_SUBSETS, MOST_VISITS // rows)
    if scored > most:
        what = (
            f"{possible:,} subsets of {asked.known} columns (of all {scored_columns} columns that are scored together)"
        )
        if asked.subsets is None:
            raise InputError(
                f"known: there are {what}, too many to score on {rows:,} rows. Draw a sample of them with subsets=, "
                f"such as subsets={max(1, min(1000, most // scored_columns))} for each column, or give a lower number."
            )
        raise InputError(
            f"subsets: {asked.subsets:,} for each of {scored_columns} columns are too many to score on {rows:,} "
            f"rows. Give at "
            f"most subsets={max(1, most // scored_columns)}."
        )


def aggregate_of(measure: Measure, what: str) -> Measure:
    """Return the worst or the mean of a measure as a measure: already weighted, and a mean is not a whole number."""
    return replace(measure, weighted=False, dtype=measure.dtype if what == "worst" else None)


def aggregates_of(measures: Sequence[Measure]) -> tuple[Measure, ...]:
    """Return the worst and the mean of each measure, under the names of outputs: <measure>_worst, <measure>_mean."""
    return tuple(
        replace(aggregate_of(measure, what), name=aggregate_name(measure.name, what))
        for measure in measures
        for what in AGGREGATES
    )


def aggregate_name(measure: str, what: str) -> str:
    """Return the name of the worst or the mean of a measure in outputs."""
    return f"{measure}_{what}"
