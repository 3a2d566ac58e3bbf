"""A table read, and what is found in its equivalence classes, whatever is asked of them.

What is looked for is told by `Search`. A table in memory is looked at as one part, in the same way as the parts of a
table of files (`streams`) or of Dask (`cluster.risks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..encoding.encode import encode_table
from ..engines.choose import choose_engine
from ..frames.base import Frame
from ..frames.dask_frame import is_dask
from ..frames.open import open_table
from ..out_of_core.temporary_table import in_streams
from ..rows.threads import Workers
from ..utils.progress import Reporter, announce_compilation
from .findings import ByAttribute, Stopwatch, combine
from .request import Asked
from .search import Assessed, Search

if TYPE_CHECKING:
    from ..encoding.column import Column
    from ..engines.base import Engine, Job, Progress
    from .with_population import Beside


def assess(table: Any, asked: Asked, most: int = 0, beside: Beside | None = None) -> Assessed:
    """Find what is asked of a table, its most homogeneous classes, so many of them, and its classes in a population.

    Raises InputError, TableReadError, OutputError, DeviceError.
    """
    if is_dask(table):
        from .dask import assess_dask

        return assess_dask(table, asked, most, beside)
    engine = choose_engine(asked.device)
    with Reporter() as report, announce_compilation():
        if in_streams(table, asked.choose, asked.sep):
            from .out_of_core import assess_files

            return assess_files(table, asked, most, engine, report, beside)
        watch = Stopwatch()
        with watch("read and encode"):
            frame = open_table(table, asked.pick, engine.frames, asked.sep)
            asked.check(frame.names)
            with frame.active():
                columns = encode(frame, asked, report)
                search = Search.of(asked, columns, frame.rows, most, frame.orders(), frame.scores_on)
        found = assess_parts(search, [search.job], engine, report, watch)
        if beside is None:
            return found
        with watch("population"):
            there = beside.classes(columns[: search.known], asked, report)
        return replace(found, there=there, seconds=watch.seconds)


def assess_parts(
    search: Search,
    parts: Iterable[Job],
    engine: Engine,
    report: Reporter,
    watch: Stopwatch,
) -> Assessed:
    """What is found in the parts of a table, gone through once or twice."""
    with Workers() as workers:

        def look(at: Callable[[Job, Progress], ByAttribute]) -> ByAttribute:
            report.stage("score", search.rows * len(search.job.targets), "cells")
            found: ByAttribute = {}
            for job in parts:
                # Cells of distinct rows are not those of the table.
                whole = job.times is None
                found = combine(search.most, found, at(job, report if whole else Reporter(visible=False)))
                if not whole:
                    report.advance(job.total * len(job.targets))
            return found

        found = look(lambda job, progress: search.find(engine, job, progress, workers, watch))
        second, again = search.second(found), ByAttribute()
        if second.measures:
            again = look(lambda job, progress: search.find_again(engine, job, progress, second.measures, watch))
    return search.conclude(found, second, again, engine.device, watch.seconds)


def encode(frame: Frame, asked: Asked, report: Reporter) -> list[Column]:
    """The columns that are needed as codes."""
    report.stage("encode", len(asked.columns), "columns")
    arrays = [frame.column(frame.names.index(name)) for name in asked.columns]
    with Workers() as workers:
        return list(encode_table(asked.columns, arrays, frame.rows, asked.missing, workers, report.advance).columns)
