"""A table of files of any size: read once in streams, then looked at in parts that hold equivalence classes whole.

A part is its distinct rows, and how often each occurs, in order of first appearance: what is found of it is the same,
to the last bit, as in memory. Where the distinct rows of all files fit into memory they are the only part; else rows
are cut into parts on disk by the hash of their quasi-identifiers. A population is then compared in the same way.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..out_of_core.temporary_table import open_stream
from .assess import assess_parts
from .findings import Stopwatch
from .parts import Parts
from .request import Asked
from .search import Assessed, Search

if TYPE_CHECKING:
    from ..engines.base import Engine
    from ..utils.progress import Reporter
    from .with_population import Beside


def assess_files(
    table: Any, asked: Asked, most: int, engine: Engine, report: Reporter, beside: Beside | None = None
) -> Assessed:
    """`assess` of what a path names, within a memory limit."""
    watch = Stopwatch()
    with watch("read and encode"):
        joined = beside is not None
        opened = open_stream(table, asked.choose, asked.missing, report, asked.sep, copies=2, joined=joined)
    with opened as stream:
        search = Search.of(asked, stream.chunks.columns, stream.chunks.rows, most, {})
        with watch("collapse and cut"):
            parts = Parts(search.job, stream.chunks, stream.budget, stream.folder / "parts", report)
        with contextlib.closing(parts):
            found = assess_parts(search, parts, engine, report, watch)
        if beside is None:
            return found
        with watch("population"):
            there = beside.classes_of(stream, asked, report)
        return replace(found, there=there, seconds=watch.seconds)
