"""A table beside the population that it is a part of: the sizes of its equivalence classes in both.

In memory they are matched at once. A table or a population that is read in streams is compared part by part, in parts
that hold equal rows of both. Where missing values match every value, all distinct rows of both are one part.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Hashable, Sequence
from functools import partial
from pathlib import Path

from ..attack.joined_columns import JoinedColumns
from ..attack.population import (
    MatchedRows,
    Population,
    class_sizes_there,
    encode_population,
    lacks_error,
    match_population,
    open_population,
)
from ..encoding.column import Column
from ..engines.base import Engine
from ..io.base import Source
from ..out_of_core.budget import Budget
from ..out_of_core.chunks import MemoryChunks, TableChunks
from ..out_of_core.collapse import TooManyRowsError
from ..out_of_core.joined_rows import AbsentRows, JoinedTables
from ..out_of_core.temporary_table import TemporaryTable, in_streams, open_temporary_table
from ..rows.threads import Workers
from ..utils.private_folder import private_folder
from ..utils.progress import Reporter
from ..utils.validation import check_exist
from .parts import too_many_to_compare
from .population_risks import MatchedClasses, PopulationClasses
from .presence import PresenceRanking
from .request import RiskRequest

# Of the rows that there is memory for: they are matched, beside the part that they come in.
SHARE = 0.5


def population_classes(
    columns: Sequence[Column], population: Population, request: RiskRequest, engine: Engine, report: Reporter
) -> MatchedClasses:
    """The classes of a table in memory; columns: its quasi-identifiers.

    Raises InputError where the table is no part of the population; TableReadError, OutputError.
    """
    names = request.quasi_identifiers
    if in_streams(population.table, partial(_choose, names)):
        with _open(population, request, report, None) as people:
            table = MemoryChunks(columns, people.budget.chunk_rows)
            asked = (request, population.lacks, engine)
            return _in_parts(table, people.chunks, *asked, people.budget, people.folder, report)
    found = match_population(open_population(population.table, names), columns, request.missing, population.lacks)
    return classes_of_matched(found.joined, PresenceRanking.of(request.groups, found.joined), found.rows, engine)


def population_classes_of_files(
    table: TemporaryTable, population: Population, request: RiskRequest, engine: Engine, report: Reporter
) -> MatchedClasses:
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
        asked = (request, population.lacks, engine)
        return _in_parts(table.chunks, people, *asked, budget, table.folder, report)


def classes_of_matched(
    columns: JoinedColumns, ranking: PresenceRanking, matched: MatchedRows, engine: Engine
) -> MatchedClasses:
    """The classes of the rows of a part, or, where missing values match every value, of all rows."""
    if not any(columns.wildcards):
        sizes = PopulationClasses.of(matched.sampled, matched.in_population)
        return MatchedClasses(sizes, ranking.first(columns, matched))
    if not len(matched.keys):
        return MatchedClasses(PopulationClasses.of_rows(matched.sampled, matched.in_population), [])
    codes = columns.layout.unpack(matched.keys)
    people = class_sizes_there(columns, codes, matched.in_population, engine)
    return MatchedClasses(PopulationClasses.of_rows(matched.sampled, people), [])


def _open(population: Population, request: RiskRequest, report: Reporter, budget: Budget | None) -> TemporaryTable:
    """The files of the population, encoded on disk; budget: that the table was read with."""
    return open_temporary_table(
        population.table,
        partial(_choose, request.quasi_identifiers),
        request.kept_missing,
        report,
        copies=2,
        joined=True,
        argument="population",
        budget=budget,
    )


def _in_parts(
    table: TableChunks,
    people: TableChunks,
    request: RiskRequest,
    lacks: str,
    engine: Engine,
    budget: Budget,
    folder: Path,
    report: Reporter,
) -> MatchedClasses:
    joined = JoinedTables(table, people, len(request.quasi_identifiers), request.missing)
    columns = joined.columns.settled(joined.columns.counts, lacks)
    limit = max(1, int(SHARE * budget.part_rows(columns.classes_job())))
    lacking = AbsentRows(joined, limit)
    cut = folder / "population"
    private_folder(cut)
    ranking = PresenceRanking.of(request.groups, columns)
    found: list[MatchedClasses] = []
    try:
        for matched in joined.matched(budget, limit, cut, report):
            part = classes_of_matched(columns, ranking, matched, engine)
            found = [MatchedClasses.total(request.groups, *found, part)]
            if lacks == "error" and not any(columns.wildcards):
                lacking.add(matched.lacking())
    except TooManyRowsError:
        raise too_many_to_compare(limit, table.rows + people.rows) from None
    finally:
        shutil.rmtree(cut)
    short = lacking.found()
    if short["lacking"]:
        raise lacks_error(short["lacking"], table.rows, *short["first"])
    return found[0]


def _choose(names: Sequence[Hashable], source: Source) -> list[str]:
    """The columns of a population in files; raises InputError where it lacks one."""
    check_exist("population", names, source.names, "the population")
    return [str(name) for name in names]
