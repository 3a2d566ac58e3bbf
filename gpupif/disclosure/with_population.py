"""A table beside the population that it is a part of: the sizes of its equivalence classes in both.

In memory they are matched at once. A table or a population that is read in streams is compared part by part, in parts
that hold equal rows of both: the table that a row is of takes the place of a sensitive attribute.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Hashable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ..attack.joined_columns import SAMPLE, counting_job
from ..attack.population import (
    MatchedRows,
    Population,
    encode_population,
    lacks_error,
    match_population,
    open_population,
)
from ..encoding.column import Column
from ..engines.block_scoring import pack_keys
from ..io.base import Source
from ..out_of_core.budget import Budget
from ..out_of_core.chunks import MemoryChunks, TableChunks
from ..out_of_core.joined_rows import AbsentRows, JoinedTables
from ..out_of_core.temporary_table import TemporaryTable, in_streams, open_temporary_table
from ..rows.threads import Workers
from ..utils.progress import Reporter
from ..utils.validation import check_exist
from .journalist import PopulationClasses
from .parts import Parts
from .request import RiskRequest

# Of the rows that there is memory for: they are matched, beside the part that they come in.
SHARE = 0.5


def population_classes(
    columns: Sequence[Column], population: Population, request: RiskRequest, report: Reporter
) -> PopulationClasses:
    """The classes of a table in memory; columns: its quasi-identifiers.

    Raises InputError where the table is no part of the population; TableReadError, OutputError.
    """
    names = request.quasi_identifiers
    if in_streams(population.table, partial(_choose, names)):
        with _open(population, request, report, None) as people:
            table = MemoryChunks(columns, people.budget.chunk_rows)
            return _in_parts(table, people.chunks, len(names), population.lacks, people.budget, people.folder, report)
    found = match_population(open_population(population.table, names), columns, request.missing, population.lacks)
    return PopulationClasses.of(found.sampled, found.times)


def population_classes_of_files(
    table: TemporaryTable, population: Population, request: RiskRequest, report: Reporter
) -> PopulationClasses:
    """The classes of a table in files, whose first columns are its quasi-identifiers; see `population_classes`."""
    names = request.quasi_identifiers
    with contextlib.ExitStack() as files:
        people: TableChunks
        if isinstance(population.table, str | os.PathLike):
            stream = files.enter_context(_open(population, request, report, table.budget))
            people, budget = stream.chunks, stream.budget
        else:
            frame = open_population(population.table, names)
            with Workers() as workers:
                columns = encode_population(frame, names, request.missing, workers)
            people, budget = MemoryChunks(columns, table.budget.chunk_rows), table.budget
        return _in_parts(table.chunks, people, len(names), population.lacks, budget, table.folder, report)


def _open(population: Population, request: RiskRequest, report: Reporter, budget: Budget | None) -> TemporaryTable:
    """The files of the population, encoded on disk; budget: that the table was read with."""
    return open_temporary_table(
        population.table,
        partial(_choose, request.quasi_identifiers),
        request.missing,
        report,
        copies=2,
        joined=True,
        argument="population",
        budget=budget,
    )


def _in_parts(
    table: TableChunks,
    people: TableChunks,
    known: int,
    lacks: str,
    budget: Budget,
    folder: Path,
    report: Reporter,
) -> PopulationClasses:
    joined = JoinedTables(table, people, known)
    rows = joined.rows(range(known))
    origins = np.array([table.rows, people.rows])
    job = counting_job([*joined.columns.counts, origins], targets=[known], known=list(range(known)))
    parts = Parts(job, rows, budget, folder / "population", report, " with the population", SHARE)
    report.stage("compare with the population", rows.rows, "rows")
    lacking = AbsentRows(joined, parts.limit)
    found: list[PopulationClasses] = []
    with contextlib.closing(parts), Workers() as workers:
        for part in parts:
            *codes, origin = part.job.codes
            keys = pack_keys(codes, joined.columns.layout, workers)
            matched = MatchedRows.of(keys, part.times, origin == SAMPLE, workers)
            found = [PopulationClasses.total(*found, PopulationClasses.of(matched.sampled, matched.in_population))]
            if lacks == "error":
                lacking.add(matched.lacking())
            report.advance(int(part.times.sum()))
    short = lacking.found()
    if short["lacking"]:
        raise lacks_error(short["lacking"], table.rows, *short["first"])
    return found[0]


def _choose(names: Sequence[Hashable], source: Source) -> list[str]:
    """The columns of a population in files; raises InputError where it lacks one."""
    check_exist("population", names, source.names, "the population")
    return [str(name) for name in names]
