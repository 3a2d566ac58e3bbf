"""The search for special uniques of a table in memory or on disk, in the fastest way for which there is memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..attack.weights import Units
from ..engines.base import Engine
from ..marginals.coded_table import CodedTable, without_codes
from ..marginals.counts_on_disk import ChunkCounts
from ..out_of_core.table_chunks import MemoryChunks, TableChunks
from ..out_of_core.temporary_table import TemporaryTable
from ..rows.threads import Workers, default_threads
from ..utils.display import duration
from ..utils.memory import resident_bytes
from ..utils.progress import Reporter
from . import search_time_and_memory as predictions
from .distinct_rows import DistinctRows, KeyColumns, PlacedRows, merge_rows
from .minimal_uniques import FewRows, MsuCounts, Uniques
from .request import SudaRequest
from .search_by_counting import assemble, find_hits, find_minimal
from .search_by_pairs import SearchByPairs
from .search_by_sets import SearchBySets
from .search_time_and_memory import FreeMemory, bytes_by_pairs, bytes_by_sets, packing_bytes, share_by_sets
from .value_combinations import MissingValues

# The share of the working memory for minimal combinations, if rows are counted on disk.
MINIMAL_SHARE = 0.2
# Distinct rows take MERGING times their own bytes while they are merged and searched.
MERGING = 6
# A search of this many seconds or more is announced with its duration.
WORTH_SAYING = 10


def search_codes(
    coded: CodedTable,
    request: SudaRequest,
    report: Reporter,
    memory_limit: int | None,
    temp: Path | None,
    engine: Engine,
) -> Uniques:
    """Search a table whose codes are in memory. Raises InputError for too little memory, OutputError.

    memory_limit: bytes of the process; None for all free memory. temp: the folder for temporary files; None for the
    folder of the system.
    """
    packing = packing_bytes(coded.rows, coded.cardinalities)
    FreeMemory.now(memory_limit).check(
        packing, f"{coded.rows:,} rows", len(coded.columns), request.max_size, request.contributions
    )
    keys = KeyColumns(coded.read, len(coded.columns), request.reads.weights)
    merged = gather_chunks(MemoryChunks(coded.read, coded.rows), keys, report)
    assert merged is not None
    return search_gathered(merged, keys, request, report, memory_limit, temp, engine)


def search_gathered(
    merged: PlacedRows,
    keys: KeyColumns,
    request: SudaRequest,
    report: Reporter,
    memory_limit: int | None,
    temp: Path | None,
    engine: Engine,
) -> Uniques:
    """Search the distinct rows of a table. merged: the distinct rows. Others: as of `search_codes`."""
    with Workers() as workers:
        rows = DistinctRows.from_keys(merged.keys, merged.multiplicities, keys.cardinalities, workers)
    msus = search_rows(rows, request, request.missing_values(keys.columns), report, memory_limit, temp, engine)
    return few_uniques(rows, merged, msus, keys.units)


def search_rows(
    rows: DistinctRows,
    request: SudaRequest,
    missing: MissingValues | None,
    report: Reporter,
    memory_limit: int | None,
    temp: Path | None,
    engine: Engine,
) -> MsuCounts:
    """Search distinct rows in memory. missing: see `SudaRequest.missing_values`. Others: as of `search_codes`."""
    memory, on_gpu = FreeMemory.now(memory_limit), engine.device != "cpu"
    plan = plan_search(memory, len(rows), len(rows.single), rows.cardinalities, request, on_gpu)
    weights = request.set_weights(len(rows.codes))
    if plan.way == "pairs":
        with Workers() as workers:
            search = SearchByPairs(rows, weights, plan.left, missing)
            report.stage("search", len(rows.single), "rows")
            msus = MsuCounts.nothing(len(weights), len(rows), len(rows.codes), request.contributions)
            search.search(rows.single, rows.single, msus, workers, report.advance, partial(tell, report))
        return msus
    sets = predictions.count_sets(len(rows.codes), request.max_size)
    shares = share_by_sets(memory, len(rows), rows.cardinalities, request.max_size, request.contributions)
    with Workers(shares.threads) as workers, engine.counting(workers) as counting:
        tell(report, plan.seconds / workers.threads)
        report.stage("search", sets, "sets")
        by_sets = SearchBySets(rows, workers, shares, temp, counting, missing)
        return by_sets.run(weights, request.contributions, report.advance)


class SearchPlan(NamedTuple):
    """The way to search distinct rows.

    way: "pairs" or "sets". seconds: the estimated time of one core. left: free bytes beyond the least that it needs.
    """

    way: str
    seconds: float
    left: int


def plan_search(
    memory: FreeMemory, rows: int, unique: int, cardinalities: Sequence[int], request: SudaRequest, gpu: bool
) -> SearchPlan:
    """Return the fastest way to search distinct rows for which there is enough memory.

    rows, unique: how many distinct rows and single rows there are. gpu: whether a GPU counts. Raises InputError if
    there is memory for neither way, or the search takes too long.
    """
    size, contributions = request.max_size, request.contributions
    needed = bytes_needed(rows, cardinalities, request)
    least = min(needed[way] for way in predictions.seconds_by_way(rows, unique, cardinalities, size, gpu))
    memory.check(least, f"{rows:,} distinct rows", len(cardinalities), size, contributions)
    plans = {}
    for largest in range(1, size + 1):
        ways = predictions.seconds_by_way(rows, unique, cardinalities, largest, gpu).items()
        fit = (SearchPlan(way, seconds, memory.free - needed[way]) for way, seconds in ways)
        plans[largest] = next(plan for plan in fit if plan.left >= 0)
    predictions.check_time(rows, len(cardinalities), {largest: plan.seconds for largest, plan in plans.items()})
    return plans[size]


def bytes_needed(rows: int, cardinalities: Sequence[int], request: SudaRequest) -> dict[str, int]:
    """Return the least bytes that each way takes to search distinct rows, without the bytes of the rows."""
    arguments = rows, cardinalities, request.max_size, request.contributions
    return {"pairs": bytes_by_pairs(*arguments), "sets": bytes_by_sets(*arguments)}


def tell(report: Reporter, seconds: float) -> None:
    """Report how long a long search takes. seconds: of all cores together."""
    if seconds >= WORTH_SAYING:
        report.say(f"the search for special uniques takes about {duration(seconds)}")


def search_stream(
    stream: TemporaryTable, request: SudaRequest, report: Reporter, limit: int, engine: Engine
) -> tuple[CodedTable, Uniques]:
    """Search a table on disk: its distinct rows in memory if they fit into the limit, else by counting on disk.

    limit: bytes of the process. Returns the columns of the table, and its uniques. Raises InputError, OutputError.
    """
    table = without_codes(stream, request.reads)
    keys = KeyColumns(table.read, len(table.columns), request.reads.weights)
    merged = gather_chunks(stream.chunks, keys, report, (limit - resident_bytes()) // MERGING)
    if merged is None or not fits(len(merged.multiplicities), table, request, limit):
        return table, count_stream(stream, table, request, report, engine)
    return table, search_gathered(merged, keys, request, report, limit, stream.folder, engine)


def fits(rows: int, table: CodedTable, request: SudaRequest, limit: int) -> bool:
    """Return whether the memory is enough for any way to search distinct rows. rows: how many there are."""
    cardinalities = table.cardinalities
    ways = predictions.seconds_by_way(rows, rows, cardinalities, request.max_size, gpu=False)
    least = min(bytes_needed(rows, cardinalities, request)[way] for way in ways)
    return packing_bytes(rows, cardinalities) + least <= FreeMemory.now(limit).free


def gather_chunks(chunks: TableChunks, keys: KeyColumns, report: Reporter, room: float = math.inf) -> PlacedRows | None:
    """Return the distinct rows of a table; None if they take more than `room` bytes."""
    gathered: list[PlacedRows] = []
    start = 0
    report.stage("rows", chunks.rows, "rows")
    with Workers() as workers:
        for number, size in enumerate(chunks.sizes):
            ones, places = np.ones(size, np.uint32), np.arange(start, start + size)
            gathered.append(keys.placed_rows(chunks.codes(number), ones, places, workers))
            # Merge when the first entry, which is merged, is no longer than the others: no row is merged often.
            merged, *others = (len(rows.multiplicities) for rows in gathered)
            if sum(others) >= merged or not number:
                gathered = [merge_rows(gathered, workers)]
            if sum(rows.nbytes for rows in gathered) > room:
                return None
            start += size
            report.advance(size)
        return gathered[0] if len(gathered) == 1 else merge_rows(gathered, workers)


def few_uniques(rows: DistinctRows, merged: PlacedRows, msus: MsuCounts, units: Units | None) -> Uniques:
    """Return the uniques of a table from its distinct rows: a record for each row with MSUs, see `FewRows`.

    merged: the distinct rows, with places in the table. msus: their MSUs. units: of the sampling weights.
    """
    # Only single rows have MSUs.
    unique = np.flatnonzero(np.bitwise_or.reduce(msus.counts, axis=0))
    unique = unique[np.argsort(merged.places[unique], kind="stable")]
    people = None if units is None else int(merged.units[rows.paired].sum()) * units.unit
    pairs = 2 * int(rows.paired.sum())
    return Uniques(FewRows(merged.places[unique]), len(rows.single), pairs, msus.of_few(unique), people)


def count_stream(
    stream: TemporaryTable, table: CodedTable, request: SudaRequest, report: Reporter, engine: Engine
) -> Uniques:
    """Search a table on disk by counting combinations there; only minimal combinations must fit into memory."""
    chunks = stream.chunks
    tell(report, check_counting(chunks.rows, len(table.columns), request.max_size))
    # Uniques are combinations that one row has, whatever its weight: sampling weights are read as a plain column.
    every = replace(request.reads, columns=stream.names, weights=None)
    counts = ChunkCounts(stream, every, report, engine)
    minimal = find_minimal(counts, table.names, request, int(MINIMAL_SHARE * stream.budget.working))
    report.stage("rows", chunks.rows, "rows")
    hits = []
    with Workers() as workers:
        for number, rows in enumerate(chunks.sizes):
            hits.append((rows, find_hits(minimal.minimal, chunks.codes(number), workers)))
            report.advance(rows)
    return assemble(minimal, hits, request)


def check_counting(rows: int, columns: int, size: int) -> float:
    """Return the seconds of all cores to count sets of up to `size` columns on disk.

    Raises InputError if the sets are too many, or counting takes too long.
    """
    predictions.check_counting(columns, size)
    seconds = {largest: predictions.seconds_on_disk(rows, columns, largest) for largest in range(1, size + 1)}
    predictions.check_time(rows, columns, seconds)
    return seconds[size] / default_threads()
