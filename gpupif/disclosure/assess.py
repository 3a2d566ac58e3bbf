"""A table read, and what is found in its equivalence classes, whatever is asked of them.

What is looked for is told by `RiskSearch`. A table in memory is looked at as one part, in the same way as the parts of
a table of files (`out_of_core`) or of Dask (`dask`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..attack.population import Population
from ..engines.choose import choose_engine
from ..frames.dask_frame import is_dask
from ..frames.open import device_for, open_table
from ..out_of_core.temporary_table import in_streams
from ..scoring.in_memory import encode_frame
from ..utils.progress import Reporter, announce_compilation
from .out_of_core import assess_files
from .partition_search import Partition, Stopwatch
from .request import RiskRequest
from .risk_search import Assessment, RiskSearch, search_partitions
from .with_population import population_classes


def assess(table: Any, request: RiskRequest, population: Population | None = None) -> Assessment:
    """Find what is asked of a table, and its classes in a population.

    Raises InputError, TableReadError, OutputError, DeviceError.
    """
    if is_dask(table):
        from .dask import assess_dask

        return assess_dask(table, request, population)
    engine = choose_engine(device_for(table))
    with Reporter() as report, announce_compilation():
        if in_streams(table, request.choose):
            return assess_files(table, request, engine, report, population)
        watch = Stopwatch()
        with watch("read and encode"):
            frame = open_table(table, request.pick, engine.frames)
            request.pick(frame.names)
            orders = frame.orders()
            with frame.active():
                # What is asked of cells knows a column that takes the place of an attribute; the table does not.
                score_request = replace(request.score_request(orders), used=request.columns)
                encoded, weighted = encode_frame(frame, score_request, report)
                search = RiskSearch.from_columns(
                    request, encoded.columns, frame.rows, orders, weighted, frame.scores_on
                )
        part = Partition.from_table(search.job)
        found = search_partitions(search, [part], engine, report, watch)
        if population is None:
            return found
        with watch("population"):
            classes = population_classes(
                encoded.columns[: len(request.quasi_identifiers)], population, request, engine, report
            )
        return replace(found, in_population=classes, seconds=watch.seconds)
