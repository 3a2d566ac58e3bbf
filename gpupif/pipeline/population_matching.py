"""Tasks that match the rows of a population with the rows of the table, and find the rows that the population lacks."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.codes import add_multiplicities

from ..attack.joined_columns import SAMPLE
from ..attack.population import MatchedRows, first_absent, lacks_error, number_among
from ..rows.distinct import distinct_rows
from ..rows.partition import Rows
from . import chunk_encoding
from .shuffle_messages import message_memory, pack, partition_of_keys, row_count, rows_in, rows_to_messages, unpack
from .table_plan import Plan, PopulationPlan
from .task_resources import task_workers

if TYPE_CHECKING:
    import pandas as pd


def joined_rows(population: PopulationPlan, origin: int, local: chunk_encoding.EncodedChunk) -> Rows:
    """Return the distinct rows of a chunk of either table as keys of joined values, with multiplicities.

    origin: int. SAMPLE for a chunk of the table, POPULATION for a chunk of the population.
    """
    joined = population.columns
    columns = joined.sample if origin == SAMPLE else joined.population
    # The column of weights is last; it is not matched.
    used = local._replace(codes=local.codes[: len(columns)], values=local.values[: len(columns)])
    codes = joined.codes(chunk_encoding.global_codes(columns, used), origin)
    with task_workers() as workers:
        return Rows(joined.layout.pack(codes, workers), local.multiplicities)


def send_joined_rows(
    partitions: int, overlapping: bool, population: PopulationPlan, source: int, rows: Rows, origin: int
) -> pd.DataFrame:
    """Return the messages that bring equal rows of both tables to one partition.

    overlapping: bool. If missing values are wildcards, equivalence classes overlap: True sends all rows to one
    partition, and False sends none.
    """
    wildcards = any(population.columns.wildcards)
    if not len(rows.keys) or (wildcards and not overlapping):
        return pack([])
    layout = population.columns.layout
    to = (
        np.zeros(len(rows.keys), np.uint32)
        if wildcards
        else partition_of_keys(rows.keys, layout, layout.fields, partitions)
    )
    with task_workers(message_memory(rows)) as workers:
        return pack(rows_to_messages(rows, to, partitions, source, origin, workers))


class AbsentInChunk(NamedTuple):
    """Rows of the table with fewer rows in the population, if the first row without a counterpart is in this chunk.

    chunk: int. The number of the chunk.
    rows: MatchedRows. The distinct rows.
    room: array, one for each distinct row. How many of them in this chunk still have a counterpart in the population.
    """

    chunk: int
    rows: MatchedRows
    room: npt.NDArray[np.int64]


class MetRows(NamedTuple):
    """The distinct rows of both tables that were sent to one partition.

    first: AbsentInChunk. The rows that the population lacks, in the first chunk with such rows; None if it lacks none.
    """

    rows: MatchedRows
    first: AbsentInChunk | None


def match_rows(population: PopulationPlan, partition: int, frame: pd.DataFrame) -> MetRows:
    """Match the distinct rows of both tables that were sent to a partition."""
    words = population.columns.layout.words
    messages = unpack(frame, partition)
    ours = [message for message in messages if message.cut == SAMPLE]
    mine, theirs = (rows_in(some, words) for some in (ours, messages[len(ours) :]))
    keys = np.concatenate([mine.keys, theirs.keys])
    if not len(keys):
        return MetRows(MatchedRows(keys, *np.zeros((2, 0), np.int64)), None)
    with task_workers() as workers:
        found = distinct_rows(Rows(keys), len(keys), workers)
    number = found.number[: len(mine.keys)]
    sampled, in_population = np.zeros((2, len(found.rows.keys)), np.int64)
    add_multiplicities(number, mine.counts, sampled)
    add_multiplicities(found.number[len(mine.keys) :], theirs.counts, in_population)
    rows = MatchedRows(found.rows.keys, sampled, in_population)
    sources, sizes = np.array([(one.source, row_count(one)) for one in ours], np.int64).reshape(-1, 2).T
    return MetRows(rows, _first_chunk(rows, number, np.repeat(sources, sizes), mine.counts))


def _first_chunk(
    rows: MatchedRows, number: npt.NDArray[Any], sources: npt.NDArray[np.int64], multiplicities: npt.NDArray[np.int64]
) -> AbsentInChunk | None:
    """Return the first chunk with rows that the population lacks; None if it lacks none.

    number: array, one for each sent row. The number of the row in `rows`. Rows with different weights may be equal.
    sources: array, one for each sent row, ascending. The chunk that sent the row.
    multiplicities: array, one for each sent row. The multiplicity of the row in its chunk.
    """
    lacking = np.flatnonzero((rows.sampled > rows.in_population)[number])
    if not len(lacking):
        return None
    order = lacking[np.argsort(number[lacking], kind="stable")]
    number, sources = number[order], sources[order]
    together = np.flatnonzero(np.append(True, (number[1:] != number[:-1]) | (sources[1:] != sources[:-1])))
    number, sources, multiplicities = (
        number[together],
        sources[together],
        np.add.reduceat(multiplicities[order], together),
    )
    before = np.cumsum(multiplicities) - multiplicities
    begins = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
    before -= np.repeat(before[begins], np.diff(np.append(begins, len(number))))
    # The population has counterparts for `in_population` of these rows: the row after them is the first that it lacks.
    room = rows.in_population[number] - before
    first = (room >= 0) & (room < multiplicities)
    chunk = sources[first].min()
    first &= sources == chunk
    return AbsentInChunk(int(chunk), rows.some(number[first]), room[first])


class AbsentRowTotals(NamedTuple):
    """Totals of the rows of the table that the population lacks.

    rows: int. The number of rows.
    distinct: int. The number of distinct rows.
    counts: list of arrays, one for each column. The number of rows with each joined value.
    first: AbsentInChunk. The rows in the first chunk with such rows; None if there are none, or if they are no error.
    """

    rows: int
    distinct: int
    counts: list[npt.NDArray[np.int64]]
    first: AbsentInChunk | None


def find_absent_rows(lacks: str, population: PopulationPlan, met: MetRows) -> tuple[Rows, AbsentRowTotals]:
    """Return the rows of a partition that the population lacks, with multiplicities, and their totals.

    lacks: str. "error" keeps the first chunk with such rows for the error message.
    If missing values are wildcards, no row is known to be absent.
    """
    short, first = met.rows.lacking(), met.first if lacks == "error" else None
    if any(population.columns.wildcards):
        short, first = short.some(slice(0)), None
    rows = Rows(short.keys, short.sampled - short.in_population)
    counts = [np.zeros(len(values), np.int64) for values in population.columns.values]
    for own, total in zip(population.columns.layout.unpack(rows.keys), counts, strict=True):
        add_multiplicities(own, rows.counts, total)
    return rows, AbsentRowTotals(short.absent, len(rows.keys), counts, first)


def add_absent_rows(*partitions: AbsentRowTotals) -> AbsentRowTotals:
    """Return the totals of several partitions."""
    rows, distinct, counts, firsts = zip(*partitions, strict=True)
    added = [np.sum(several, axis=0) for several in zip(*counts, strict=True)]
    return AbsentRowTotals(sum(rows), sum(distinct), added, _earliest([first for first in firsts if first is not None]))


def _earliest(several: list[AbsentInChunk]) -> AbsentInChunk | None:
    """Return the rows of the first chunk among these, combined."""
    if not several:
        return None
    chunk = min(one.chunk for one in several)
    several = [one for one in several if one.chunk == chunk]
    kinds = MatchedRows(*map(np.concatenate, zip(*(one.rows for one in several), strict=True)))
    return AbsentInChunk(chunk, kinds, np.concatenate([one.room for one in several]))


class FirstAbsent(NamedTuple):
    """The first row that the population lacks, in some chunks that follow each other.

    rows: int. The number of rows in the chunks.
    first: tuple. The number of the row among these rows, and the further arguments of `lacks_error`; None if there is
    no such row.
    """

    rows: int
    first: tuple[int, int, int, str] | None


def find_first_absent(
    population: PopulationPlan,
    lacking: AbsentRowTotals,
    chunk: int,
    local: chunk_encoding.EncodedChunk,
    number: npt.NDArray[Any],
) -> FirstAbsent:
    """Return the first row that the population lacks, if it is in this chunk.

    number: array, one for each row. See `ChunkIndex`.
    """
    if lacking.first is None or lacking.first.chunk != chunk:
        return FirstAbsent(len(number), None)
    _, kinds, room = lacking.first
    keys = joined_rows(population, SAMPLE, local).keys
    with task_workers() as workers:
        which = number_among(kinds.keys, keys, workers)[number]
    # The last item is for rows that the population does not lack: as much room as the chunk has rows.
    row = first_absent(which, np.append(room, len(number)))
    assert row is not None
    return FirstAbsent(len(number), (row, *kinds.about(which[row], population.columns)))


def add_chunks(*several: FirstAbsent) -> FirstAbsent:
    """Return the first absent row of chunks that follow each other."""
    starts = accumulate((one.rows for one in several), initial=0)
    found = ((start + one.first[0], *one.first[1:]) for start, one in zip(starts, several, strict=False) if one.first)
    return FirstAbsent(sum(one.rows for one in several), next(found, None))


def settle_population(
    population: PopulationPlan, lacks: str, lacking: AbsentRowTotals, first: FirstAbsent | None
) -> PopulationPlan:
    """Return the population with the rows, or values, that it lacked; raise InputError if `first` is such a row."""
    if first is not None and first.first is not None:
        raise lacks_error(lacking.rows, population.rows, *first.first)
    return population.with_lacking(lacking.rows, lacking.distinct, lacking.counts, lacks)


def project_rows(whole: PopulationPlan, planned: Plan, rows: Rows) -> Rows:
    """Return rows of all columns as the distinct rows of a plan that uses fewer columns."""
    names = whole.columns.names
    places = [names.index(name) for name in planned.request.used]
    if len(places) == len(names):
        return rows
    codes = whole.columns.layout.unpack(rows.keys)
    with task_workers() as workers:
        keys = planned.layout.pack([codes[place] for place in places], workers)
        return distinct_rows(Rows(keys, rows.counts), whole.total, workers).rows
