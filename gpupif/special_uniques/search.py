"""The search for special uniques: in the way that is fastest, wherever the rows of the table are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..attack.weights import Units
from ..engines.base import Engine
from ..marginals.coded_table import Coded, without_codes
from ..marginals.counts_on_disk import ChunkCounts
from ..out_of_core.temporary_table import TemporaryTable
from ..rows.keys import KeyLayout
from ..rows.threads import Workers, default_threads
from ..utils.memory import resident_bytes
from ..utils.progress import Reporter
from . import search_time_and_memory as predictions
from .distinct_rows import DistinctRows, PartRows, RowGatherer
from .minimal_uniques import FewRows, Found, Uniques
from .request import SudaRequest, sample_units
from .search_by_counting import assemble, find_hits, find_minimal
from .search_by_pairs import SearchByPairs
from .search_by_sets import SearchBySets
from .search_time_and_memory import FreeMemory, bytes_by_pairs, bytes_by_sets, packing_bytes, share_by_sets
from .value_combinations import MissingValues

# Of the working memory: what the minimal combinations may take, where rows are counted on disk.
MINIMAL_SHARE = 0.2
# While distinct rows are merged and searched, they take so many times what they take between parts.
MERGING = 6
# Seconds from which on it is said how long a search takes.
WORTH_SAYING = 10


def search_codes(
    coded: Coded,
    request: SudaRequest,
    report: Reporter,
    memory_limit: int | None,
    temp: Path | None,
    engine: Engine,
) -> Uniques:
    """Search a table whose codes are in memory.

    memory_limit: of the process; None: what is free. temp: a folder for temporary files; None: the system's.
    """
    columns, cardinalities = len(coded.columns), coded.cardinalities
    predictions.check_sets(columns, request.max_size)
    packing = packing_bytes(coded.rows, cardinalities)
    FreeMemory.now(memory_limit).check(
        packing, f"{coded.rows:,} rows", columns, request.max_size, request.contributions
    )
    units = None if coded.weights is None else sample_units(coded.weights)
    with Workers() as workers:
        rows, number = DistinctRows.from_codes(coded.codes, cardinalities, workers)
    found = search_rows(rows, request, request.missing_values(coded.columns), report, memory_limit, temp, engine)
    people = None
    if units is not None and coded.weights is not None:
        people = int(units.times(coded.weights.codes[rows.paired[number]]).sum()) * units.unit
    return Uniques(number, len(rows.single), 2 * int(rows.paired.sum()), found, people)


def search_rows(
    rows: DistinctRows,
    request: SudaRequest,
    missing: MissingValues | None,
    report: Reporter,
    memory_limit: int | None,
    temp: Path | None,
    engine: Engine,
) -> Found:
    """Search the distinct rows of a table, which are in memory; others as of `search_codes`."""
    memory, on_gpu = FreeMemory.now(memory_limit), engine.device != "cpu"
    plan = plan_search(memory, len(rows), len(rows.single), rows.cardinalities, request, on_gpu)
    weights = request.set_weights(len(rows.codes))
    if plan.way == "pairs":
        with Workers() as workers:
            search = SearchByPairs(rows, weights, plan.left, missing)
            report.stage("search", len(rows.single), "rows")
            found = Found.nothing(len(weights), len(rows), len(rows.codes), request.contributions)
            search.search(rows.single, rows.single, found, workers, report.advance, partial(tell, report))
        return found
    sets = predictions.count_sets(len(rows.codes), request.max_size)
    shares = share_by_sets(memory, len(rows), rows.cardinalities, request.max_size, request.contributions)
    with Workers(shares.threads) as workers, engine.counting(workers) as counting:
        tell(report, plan.seconds / workers.threads)
        report.stage("search", sets, "sets")
        by_sets = SearchBySets(rows, workers, shares, temp, counting, missing)
        return by_sets.run(weights, request.contributions, report.advance)


class SearchPlan(NamedTuple):
    """The way to search distinct rows. way: "pairs" or "sets". seconds: about, of one core. left: bytes that
    there are beside what it needs at least.
    """

    way: str
    seconds: float
    left: int


def plan_search(
    memory: FreeMemory, rows: int, unique: int, cardinalities: Sequence[int], request: SudaRequest, gpu: bool
) -> SearchPlan:
    """The fastest way to search so many distinct rows for which there is the memory; unique: that occur once.

    Raises InputError where there is none, or it takes too long.
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
    """Return the bytes that each way takes at least to search so many distinct rows, without the rows."""
    arguments = rows, cardinalities, request.max_size, request.contributions
    return {"pairs": bytes_by_pairs(*arguments), "sets": bytes_by_sets(*arguments)}


def tell(report: Reporter, seconds: float) -> None:
    """Say how long a search takes, where somebody may want to know; seconds: of all cores together."""
    if seconds >= WORTH_SAYING:
        report.say(f"the search for special uniques takes about {predictions.duration(seconds)}")


def search_stream(
    stream: TemporaryTable, request: SudaRequest, report: Reporter, limit: int, engine: Engine
) -> tuple[Coded, Uniques]:
    """Search a table on disk within a memory limit: its distinct rows in memory where they fit, else by counting."""
    table = without_codes(stream, request.reads)
    predictions.check_sets(len(table.columns), request.max_size)
    units = None if table.weights is None else sample_units(table.weights)
    merged = gather_chunks(stream, table, units, report, (limit - resident_bytes()) // MERGING)
    if merged is None or not fits(len(merged.times), table, request, limit):
        return table, count_stream(stream, table, request, report, engine)
    with Workers() as workers:
        rows = DistinctRows.from_keys(merged.keys, merged.times, table.cardinalities, workers)
    missing = request.missing_values(table.columns)
    found = search_rows(rows, request, missing, report, limit, stream.folder, engine)
    return table, few_uniques(rows, merged, found, units)


def fits(rows: int, table: Coded, request: SudaRequest, limit: int) -> bool:
    """Return whether the memory allows any way to search so many distinct rows of a table."""
    cardinalities = table.cardinalities
    ways = predictions.seconds_by_way(rows, rows, cardinalities, request.max_size, gpu=False)
    least = min(bytes_needed(rows, cardinalities, request)[way] for way in ways)
    return packing_bytes(rows, cardinalities) + least <= FreeMemory.now(limit).free


def gather_chunks(
    stream: TemporaryTable, table: Coded, units: Units | None, report: Reporter, room: int
) -> PartRows | None:
    """The distinct rows of a table on disk; None where they take more than `room` bytes. units: of its weights."""
    chunks, columns = stream.chunks, len(table.columns)
    layout, start = KeyLayout.of(table.cardinalities), 0
    gatherer = RowGatherer(layout)
    report.stage("rows", chunks.rows, "rows")
    with Workers() as workers:
        for number, size in enumerate(chunks.sizes):
            codes = chunks.codes(number)
            weights = np.empty(0, np.int64)
            if units is not None and table.weights is not None:
                weights = units.times(codes[list(stream.names).index(table.weights.name)])
            places = np.arange(start, start + size)
            keys = layout.pack(codes[:columns], workers)
            gatherer.add(PartRows(keys, np.ones(size, np.uint32), places, weights), workers)
            if gatherer.nbytes > room:
                return None
            start += size
            report.advance(size)
        return gatherer.merge(workers)


def few_uniques(rows: DistinctRows, merged: PartRows, found: Found, units: Units | None) -> Uniques:
    """Return the result of distinct rows for the rows of the table that have minimal sets."""
    unique = rows.single[found.counts[:, rows.single].any(axis=0)]
    unique = unique[np.argsort(merged.places[unique])]
    people = None if units is None else int(merged.units[rows.paired].sum()) * units.unit
    pairs = 2 * int(rows.paired.sum())
    return Uniques(FewRows(merged.places[unique]), len(rows.single), pairs, found.of_few(unique), people)


def count_stream(
    stream: TemporaryTable, table: Coded, request: SudaRequest, report: Reporter, engine: Engine
) -> Uniques:
    """Search a table on disk by counting there what is unique; only the minimal sample uniques are in memory."""
    chunks = stream.chunks
    tell(report, check_counting(chunks.rows, len(table.columns), request.max_size))
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
    return assemble(found, hits, request)


def check_counting(rows: int, columns: int, size: int) -> float:
    """Seconds that it takes all cores to count sets of up to `size` columns on disk; raises InputError for too many."""
    predictions.check_counting(columns, size)
    seconds = {largest: predictions.seconds_on_disk(rows, columns, largest) for largest in range(1, size + 1)}
    predictions.check_time(rows, columns, seconds)
    return seconds[size] / default_threads()
