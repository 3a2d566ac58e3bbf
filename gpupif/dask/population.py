"""The population of a Dask frame: what tasks do with it. Its rows meet the table's, where those it lacks are found."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpupif.kernels import partition as kernels
from gpupif.kernels.codes import add_times

from ..attack.population import Met, join_codes, lacks_error, prior_in, stranger
from ..engines.block_scoring import pack_keys, unpack_keys
from ..errors import InputError
from ..rows.keys import KeyLayout
from ..rows.partition import Rows
from . import partition as home
from . import plan
from .parcels import Parcel, pack, unpack
from .worker import task_workers

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from ..attack.priors import Prior
    from ..attack.request import Question
    from ..encoding.column import Column

# Whose rows, in joins and in parcels.
TABLE, POPULATION = 0, 1


@dataclass(frozen=True)
class People:
    """What all partitions have to know of the population. By column used: columns: of the table and of the population,
    without codes of rows; joins: for their codes those in the joined values; values; counts: of the population's rows.

    rows: of the table; total: of the population. layout: of keys of joined codes.
    """

    columns: Sequence[tuple[Column, Column]]
    joins: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]]
    values: Sequence[list[Any]]
    counts: Sequence[npt.NDArray[np.int64]]
    rows: int
    total: int
    layout: KeyLayout

    def of(self, names: Sequence[Hashable]) -> People:
        """The same of some of the columns."""
        places = self.places(names)
        values = [self.values[place] for place in places]
        return replace(
            self,
            columns=[self.columns[place] for place in places],
            joins=[self.joins[place] for place in places],
            values=values,
            counts=[self.counts[place] for place in places],
            layout=_layout(values),
        )

    def places(self, names: Sequence[Hashable]) -> list[int]:
        """Where these columns are."""
        own = [mine.name for mine, _ in self.columns]
        return [own.index(name) for name in names]

    def priors(self) -> dict[Hashable, Prior]:
        """The distributions in the population."""
        return {
            mine.name: prior_in(mine, counts, values)
            for (mine, _), counts, values in zip(self.columns, self.counts, self.values, strict=True)
        }

    def joined(self, codes: Sequence[npt.NDArray[Any]], whose: int) -> list[npt.NDArray[Any]]:
        """Codes of the table's or the population's columns as those of joined values."""
        return [join[whose][own] for join, own in zip(self.joins, codes, strict=True)]

    def own(self, codes: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Codes of joined values that the table has, as those of its columns."""
        # The table's values come first in both, missing ones last.
        return [np.minimum(own, mine.cardinality - 1) for own, (mine, _) in zip(codes, self.columns, strict=True)]


def _layout(values: Sequence[Sequence[Any]]) -> KeyLayout:
    return KeyLayout.of([len(several) for several in values])


def join(question: Question, names: list[Hashable], table: plan.Totals, population: plan.Totals) -> People:
    """Both tables' values, without rows that the population lacks.

    question: with all columns that any attacker knows. Raises InputError for a table or a population without rows, and
    for columns whose types do not match.
    """
    plan.check_totals(question, names, table)
    if population.rows == 0:
        raise InputError("population: expected at least one row, got none.")
    try:
        plan.check_totals(replace(question, weights=None), names, population)
    except InputError as error:
        raise error.about("population") from None
    used = len(question.used)
    mine = plan.merged_columns(question.read[:used], table.values[:used])
    columns = list(zip(mine, plan.merged_columns(question.used, population.values), strict=True))
    found = [join_codes(*both) for both in columns]
    values = [several for _, _, several in found]
    joins = [(one, other) for one, other, _ in found]
    counts = [np.zeros(len(several), np.int64) for several in values]
    for own, (_, theirs), (_, place) in zip(counts, columns, joins, strict=True):
        own[place] = theirs.counts
    return People(columns, joins, values, counts, table.rows, population.rows, _layout(values))


def joined_rows(people: People, whose: int, local: home.Local) -> Rows:
    """The distinct rows of a partition of either table, by joined values; how often each occurs."""
    columns = [both[whose] for both in people.columns]
    # Without weights, which come last.
    used = local._replace(codes=local.codes[: len(columns)], values=local.values[: len(columns)])
    codes = people.joined(home.global_codes(columns, used), whose)
    with task_workers() as workers:
        return Rows(pack_keys(codes, people.layout, workers), local.times)


def meet(parts: int, people: People, source: int, rows: Rows, whose: int) -> pd.DataFrame:
    """The parcels in which rows travel to where equal ones are compared."""
    if not len(rows.keys):
        return pack([])
    to = np.zeros(len(rows.keys), np.uint32)
    kernels.partition_ids(rows.keys, people.layout.masks(people.layout.fields), parts, to)
    order = np.argsort(to, kind="stable")
    items = np.column_stack([rows.keys[order], rows.counts[order].astype(np.uint64)])
    edges = np.cumsum(np.bincount(to, minlength=parts)).tolist()
    stretches = enumerate(pairwise([0, *edges]))
    return pack([Parcel(part, source, whose, items[start:stop]) for part, (start, stop) in stretches if start < stop])


def meet_rows(people: People, part: int, frame: pd.DataFrame) -> Met:
    """The different rows that met in a part."""
    words = people.layout.words
    parcels = unpack(frame, part)
    items = np.concatenate([np.empty((0, words + 1), np.uint64), *(p.items.reshape(-1, words + 1) for p in parcels)])
    whose = np.repeat([p.cut for p in parcels], [p.items.size // (words + 1) for p in parcels])
    if not len(items):
        nothing = np.zeros(0, np.int64)
        return Met(items[:, :-1], nothing, nothing)
    with task_workers() as workers:
        return Met.of(np.ascontiguousarray(items[:, :-1]), items[:, -1].astype(np.int64), whose == TABLE, workers)


class Lacking(NamedTuple):
    """Rows of the table that the population lacks: how many; of one kind, its codes, how many the population has and
    how many the table has; by column, how many have each joined value.
    """

    rows: int
    codes: list[int]
    there: int
    sampled: int
    counts: list[npt.NDArray[np.int64]]


def find_lacking(people: People, met: Met) -> tuple[Rows, Lacking]:
    """Of the rows that met in a part which the population lacks, with how often, and what is to be known of these."""
    short = met.short()
    rows = Rows(short.keys, short.sampled - short.there)
    codes = unpack_keys(rows.keys, people.layout)
    counts = [np.zeros(len(values), np.int64) for values in people.values]
    for own, total in zip(codes, counts, strict=True):
        add_times(own, rows.counts, total)
    one = (int(short.there[0]), int(short.sampled[0])) if len(short.keys) else (0, 0)
    return rows, Lacking(int(rows.counts.sum()), [int(own[0]) for own in codes if len(own)], *one, counts)


def add_lacking(*parts: Lacking) -> Lacking:
    """What of several parts is to be known together."""
    one = next((part for part in parts if part.rows), parts[0])
    counts = [np.sum(several, axis=0) for several in zip(*(part.counts for part in parts), strict=True)]
    return one._replace(rows=sum(part.rows for part in parts), counts=counts)


def settle(lacks: str, people: People, lacking: Lacking) -> People:
    """The population with the rows that it lacked; raises InputError where that is an error."""
    if lacks == "error" and lacking.rows:
        names = [mine.name for mine, _ in people.columns]
        there = [int(counts[code]) for counts, code in zip(people.counts, lacking.codes, strict=True)]
        unknown = stranger(names, people.values, lacking.codes, there)
        raise lacks_error(lacking.rows, people.rows, None, lacking.there, lacking.sampled, unknown)
    counts = [own + more for own, more in zip(people.counts, lacking.counts, strict=True)]
    return replace(people, counts=counts, total=people.total + lacking.rows)


def narrowed(whole: People, planned: plan.Plan, rows: Rows) -> Rows:
    """Rows of all columns as those of a plan that uses some of them."""
    places = whole.places(planned.question.used)
    codes = unpack_keys(rows.keys, whole.layout)
    with task_workers() as workers:
        return Rows(pack_keys([codes[place] for place in places], planned.layout, workers), rows.counts)
