"""The search for special uniques, by what memory there is: of codes in memory, or by counting what is on disk."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..engines.counting import CountingEngine
from ..errors import InputError
from ..marginals.coded_table import Coded, code_stream, without_codes
from ..marginals.out_of_core import ChunkCounts
from ..out_of_core.temporary_table import TemporaryTable
from ..rows.keys import code_type
from ..rows.threads import Workers
from ..utils.memory import resident_bytes
from ..utils.progress import Reporter
from .memory import search_bytes, share_search_memory
from .request import SudaRequest, sample_units
from .search_by_counting import assemble, find_hits, find_minimal
from .search_in_memory import Uniques, UniquesSearch

# Sets of columns that are searched at most, and how many rows they may have together.
MOST_SETS, MOST_VISITS = 10**7, 10**13
# Of the working memory: what the minimal combinations may take.
MINIMAL_SHARE = 0.2


def search_codes(
    coded: Coded,
    request: SudaRequest,
    report: Reporter,
    memory_limit: int | None,
    temp: Path | None,
    engine: CountingEngine,
) -> Uniques:
    """Search a table whose codes are in memory.

    memory_limit: of the process; None: what is free. temp: a folder for temporary files; None: the system's.
    """
    number, size, contributions = len(coded.columns), request.max_size, request.contributions
    check_work(number, size, 1)
    sets = count_sets(number, size)
    shares = share_search_memory(memory_limit, coded.rows, coded.cardinalities, size, sets, contributions)
    units = None if coded.weights is None else sample_units(coded.weights)
    missing = request.missing_values(coded.columns)
    with Workers(shares.threads) as workers, engine.counting(workers) as counting:
        search = UniquesSearch(coded.codes, coded.cardinalities, workers, shares, temp, counting, missing)
        check_work(number, size, search.distinct)
        report.stage("search", sets, "sets")
        found = search.run(request.set_weights(number), contributions, report.advance)
    if coded.weights is None or units is None:
        return found
    in_pairs = units.times(coded.weights.codes[search.in_pairs()])
    return replace(found, pair_people=int(in_pairs.sum()) * units.unit)


def search_stream(
    stream: TemporaryTable, request: SudaRequest, report: Reporter, limit: int, engine: CountingEngine
) -> tuple[Coded, Uniques]:
    """Search a table on disk within a memory limit; the table comes with its codes where they fit, else without."""
    chunks, size = stream.chunks, request.max_size
    table = without_codes(stream, request.reads)
    number, cardinalities = len(table.columns), table.cardinalities
    sets = count_sets(number, size)
    check_work(number, size, 1)
    codes = chunks.rows * sum(code_type(column.cardinality)().itemsize for column in chunks.columns)
    needed = search_bytes(chunks.rows, cardinalities, size, sets, request.contributions)
    if codes + needed <= limit - resident_bytes():
        coded = code_stream(stream, request.reads)
        return coded, search_codes(coded, request, report, limit, stream.folder, engine)
    check_work(number, size, chunks.rows)
    # Weights are a column like others here: what is counted is rows.
    every = replace(request.reads, columns=stream.names, weights=None)
    counts = ChunkCounts(stream, every, report, engine)
    found = find_minimal(counts, table.names, request, int(MINIMAL_SHARE * stream.budget.working))
    names = list(found.minimal)
    report.stage("rows", chunks.rows, "rows")
    hits: list[Any] = []
    start = 0
    with Workers() as workers:
        for number, rows in enumerate(chunks.sizes):
            values = chunks.codes(number)
            some = [names[place :: workers.threads] for place in range(workers.threads)]
            hits += workers.run(find_hits, [(found.minimal, values, few, start) for few in some if few])
            start += rows
            report.advance(rows)
    return table, assemble(found, hits, request)


def count_sets(columns: int, size: int) -> int:
    """Sets of up to `size` of so many columns."""
    return sum(math.comb(columns, k) for k in range(1, size + 1))


def check_work(columns: int, size: int, rows: int) -> None:
    """Raise InputError for more sets of columns than can be searched in a table of so many distinct rows."""

    def fits(size: int) -> bool:
        return count_sets(columns, size) <= min(MOST_SETS, MOST_VISITS // rows)

    if not fits(size):
        most = max((k for k in range(1, size) if fits(k)), default=1)
        where = f" in {rows:,} distinct rows" if rows > 1 else ""
        raise InputError(
            f"max_size: {columns} columns have {count_sets(columns, size):,} sets of up to {size}, too many to search"
            f"{where}. Give max_size={most} ({count_sets(columns, most):,} sets), or fewer columns."
        )
