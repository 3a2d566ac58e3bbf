"""A table of files of any size: read once in streams, then looked at in parts that hold equivalence classes whole.

A part is its distinct rows, and how often each occurs, in order of first appearance: what is found of it is the same,
to the last bit, as in memory. Where the distinct rows of all files fit into memory they are the only part; else rows
are cut into parts on disk by the hash of their quasi-identifiers. A population is then compared in the same way.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from ..attack.population import Population
from ..engines.base import Engine
from ..out_of_core.encode import weigh_chunks
from ..out_of_core.temporary_table import open_temporary_table
from ..utils.progress import Reporter
from .partition_search import Stopwatch
from .parts import Parts
from .request import RiskRequest
from .risk_search import Assessment, RiskSearch, search_partitions
from .with_population import population_classes_of_files


def assess_files(
    table: Any, request: RiskRequest, engine: Engine, report: Reporter, population: Population | None
) -> Assessment:
    """`assess` of what a path names, within a memory limit."""
    watch = Stopwatch()
    missing, joined = request.kept_missing, population is not None
    with watch("read and encode"):
        opened = open_temporary_table(table, request.choose, missing, report, copies=2, joined=joined)
    with opened as stream:
        chunks, used = stream.chunks, len(request.columns)
        weights = weighted = None
        if request.weights is not None:
            place = request.read.index(request.weights)
            units, weighted = weigh_chunks(chunks, place, used)
            weights = units, place
        search = RiskSearch.from_columns(request, chunks.columns[:used], chunks.rows, {}, weighted)
        folder = stream.folder / "parts"
        with watch("collapse and cut"):
            parts = Parts(search.job, chunks, stream.budget, folder, report, weights=weights)
        with contextlib.closing(parts):
            found = search_partitions(search, parts, engine, report, watch)
        if population is None:
            return found
        with watch("population"):
            classes = population_classes_of_files(stream, population, request, engine, report)
        return replace(found, in_population=classes, seconds=watch.seconds)
