"""A table on disk beside its population: in the same codes, and which of its rows the population lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attack.population import Met, join_codes, stranger
from ..engines.block_scoring import pack_keys, unpack_keys
from ..io.ipc_batches import BatchReader
from ..rows.distinct import distinct_rows
from ..rows.keys import KeyLayout, code_type
from ..rows.partition import Rows
from ..rows.threads import Workers
from .chunks import Chunks, TableChunks

if TYPE_CHECKING:
    import numpy.typing as npt

# What rows count for: of the table, and of the population; those added to it may count for more.
NOBODY, SOMEBODY = 0, 1
# Of the rows that there is memory for, one in so many may wait to be looked for.
LOOKED_FOR = 16


class Both(Chunks):
    """The rows of a table, then those of its population, then those that this lacks; codes count in joined values.

    The last column tells what a row counts for, by its place in `counting`. places: of the columns. joins: by column,
    for codes of the table and of the population those in the joined values. added: rows and how often each.
    """

    def __init__(
        self,
        table: TableChunks,
        population: TableChunks,
        places: Sequence[int],
        joins: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
        added: Added | None,
    ) -> None:
        self.sizes = [*table.sizes, *population.sizes, *([] if added is None else added.sizes)]
        self.counting = np.array([NOBODY, SOMEBODY, *([] if added is None else added.times)])
        self._several = (table, population)
        self._places = places
        self._joins = joins
        self._added = added

    def codes(self, number: int) -> list[npt.NDArray[Any]]:
        """See `Chunks`."""
        kind = code_type(len(self.counting))
        for chunks, which in zip(self._several, (NOBODY, SOMEBODY), strict=True):
            if number < len(chunks.sizes):
                own = chunks.some_codes(number, self._places)
                codes = [self._joins[place][which][column] for place, column in zip(self._places, own, strict=True)]
                return [*codes, np.full(chunks.sizes[number], which, kind)]
            number -= len(chunks.sizes)
        assert self._added is not None
        codes, times = self._added.rows(number)
        counted = 2 + np.searchsorted(self._added.times, times)
        return [*(codes[place] for place in self._places), counted.astype(kind)]

    def close(self) -> None:
        """See `Chunks`: the tables are closed by themselves."""


class Added:
    """Rows that the population lacks, in a file. times: the different numbers of times that they are added."""

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader
        several = [self.rows(number)[1] for number in range(len(reader))]
        self.sizes = [len(times) for times in several]
        self.times: list[int] = np.unique(np.concatenate([np.empty(0, np.int64), *several])).tolist()

    def rows(self, number: int) -> tuple[list[npt.NDArray[Any]], npt.NDArray[np.int64]]:
        """The codes of some rows, by column, and how often each is added."""
        *codes, times = self._reader.arrays(number)
        return codes, times

    def close(self) -> None:
        """Close its file."""
        self._reader.__exit__()


class Joined:
    """The first columns of a table and of its population, in the same order, each in one list of values.

    values: by column; counts: of each, how many rows of the population have it. layout: of keys of these columns.
    Raises InputError for columns whose types do not match.
    """

    def __init__(self, table: TableChunks, population: TableChunks, used: int) -> None:
        self.table = table
        self._population = population
        self._names = [column.name for column in table.columns[:used]]
        both = list(zip(table.columns[:used], population.columns[:used], strict=True))
        joined = [join_codes(mine, theirs) for mine, theirs in both]
        kinds = [code_type(len(values)) for _, _, values in joined]
        self._joins = [
            (mine.astype(kind), theirs.astype(kind)) for (mine, theirs, _), kind in zip(joined, kinds, strict=True)
        ]
        self.values = [values for _, _, values in joined]
        self.counts = [np.zeros(len(values), np.int64) for values in self.values]
        for counts, joins, (_, theirs) in zip(self.counts, self._joins, both, strict=True):
            counts[joins[SOMEBODY]] = theirs.counts
        self.layout = KeyLayout.of([len(values) for values in self.values])

    def both(self, places: Sequence[int], added: Added | None = None) -> Both:
        """The rows of both, with some of the columns."""
        return Both(self.table, self._population, places, self._joins, added)

    def keys(self, number: int, workers: Workers) -> npt.NDArray[np.uint64]:
        """Of the rows of a chunk of the table, over all columns."""
        own = self.table.some_codes(number, range(len(self._joins)))
        codes = [joins[NOBODY][column] for joins, column in zip(self._joins, own, strict=True)]
        return pack_keys(codes, self.layout, workers)

    def stranger(self, key: npt.NDArray[np.uint64]) -> str:
        """What value of a row, if any, is in no row of the population, as a sentence."""
        codes = [int(own[0]) for own in unpack_keys(key[None], self.layout)]
        there = [int(counts[code]) for counts, code in zip(self.counts, codes, strict=True)]
        return stranger(self._names, self.values, codes, there)


class Lacking:
    """The rows of a table that its population lacks, told of part by part, for what is to be said of the first.

    limit: rows that there is memory for; a part of them may be there meanwhile, so few are looked for at once.
    """

    def __init__(self, joined: Joined, limit: int) -> None:
        self._joined = joined
        self._limit = limit // LOOKED_FOR
        self._waiting: list[Met] = []
        self._rows = 0
        # Where the first one is, how often it is in the population and in the table, and what else is to be said.
        self._first = (joined.table.rows, 0, 0, "")

    def add(self, short: Met) -> None:
        """Further rows that the population has less often than the table."""
        self._rows += int((short.sampled - short.there).sum())
        self._waiting.append(short)
        if sum(len(one.keys) for one in self._waiting) > self._limit:
            self._look()

    def found(self) -> dict[str, Any]:
        """How many there are ("lacking"); and what `lacks_error` says of the "first": only where there are any."""
        if not self._rows:
            return {"lacking": 0}
        self._look()
        return {"lacking": self._rows, "first": self._first}

    def _look(self) -> None:
        """Look in the table for the first row after as many equal ones as the population has."""
        if not self._waiting:
            return
        short = Met(*(np.concatenate(several) for several in zip(*self._waiting, strict=True)))
        self._waiting = []
        # Those of other rows never run out.
        room = np.append(short.there, self._joined.table.rows)
        start = 0
        with Workers() as workers:
            for number, size in enumerate(self._joined.table.sizes):
                if not len(short.keys) or start >= self._first[0]:
                    return
                keys = np.concatenate([short.keys, self._joined.keys(number, workers)])
                which = distinct_rows(Rows(keys), len(keys), workers).number[len(short.keys) :]
                which = np.minimum(which, len(short.keys)).astype(np.int64)
                over = np.flatnonzero(_earlier(which) >= room[which])
                if len(over):
                    if start + over[0] < self._first[0]:
                        one = which[over[0]]
                        facts = int(short.there[one]), int(short.sampled[one]), self._joined.stranger(short.keys[one])
                        self._first = (start + int(over[0]), *facts)
                    return
                room -= np.bincount(which, minlength=len(room))
                start += size


def _earlier(which: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """For each item how many equal ones come before it."""
    order = np.argsort(which, kind="stable")
    arranged = which[order]
    begins = np.flatnonzero(np.append(True, arranged[1:] != arranged[:-1]))
    earlier = np.empty(len(which), np.int64)
    earlier[order] = np.arange(len(which)) - np.repeat(begins, np.diff(np.append(begins, len(which))))
    return earlier
