"""Bins of numbers and dates: from one edge up to, and not including, the next."""

from __future__ import annotations

import datetime
import math
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...encoding.plain_values import text_of, texts_of
from ...errors import ColumnTypeError, InputError
from ...utils.validation import brief, is_number
from .new_values import Groups, is_plain, typed
from .numbers import numbers


def by_edges(column: Hashable, edges: Sequence[Any], labels: Sequence[Any] | None) -> Groups:
    """Bins from one edge up to, not including, the next."""
    times = [_time(edge) for edge in edges]
    are_times = None not in times
    names = [f"[{a}, {b})" for a, b in pairwise(map(_edge_text, edges))] if labels is None else list(labels)

    def groups(values: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
            if not are_times:
                raise InputError(
                    f"recode: column {column!r}: expected edges that are dates, as its values are; got "
                    f"{brief(edges[times.index(None)])}."
                )
            bins = np.searchsorted(_instants(pa.array(times, pa.timestamp("us"))), _instants(values), "right")
            known = np.ones(len(values), np.bool_)
        elif are_times:
            mend = "Make it a column of dates, or give numbers as edges."
            raise ColumnTypeError(column, values.type, "dates, as the edges are", mend)
        else:
            found = numbers(column, values, "Bins are of numbers and of dates; give mapping for other values.")
            bins, known = found.bins(edges), found.known
        placed = known & (bins > 0) & (bins < len(edges))
        return typed(names, values.type).take(pa.array(bins - 1, mask=~placed)), placed

    return groups


def _instants(values: pa.Array) -> npt.NDArray[np.int64]:
    """Dates and times, as a clock there shows them, in microseconds."""
    if pa.types.is_timestamp(values.type) and values.type.tz:
        values = pc.local_timestamp(values)
    # What is left out is below a microsecond.
    return values.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_numpy()  # type: ignore[no-any-return]


def _time(edge: Any) -> datetime.datetime | None:
    """The date that an edge is, or is the text of."""
    if isinstance(edge, datetime.datetime):
        return edge
    if isinstance(edge, datetime.date):
        return datetime.datetime.combine(edge, datetime.time())
    try:
        return datetime.datetime.fromisoformat(edge)
    except (TypeError, ValueError):
        return None


def _edge_text(edge: Any) -> str:
    return str(edge) if isinstance(edge, str) else "inf" if edge == math.inf else text_of(edge)


def check_edges(column: Hashable, edges: Any, labels: Any) -> None:
    """Raise InputError for edges that bins cannot lie between, and labels that cannot be theirs."""
    what = f"recode: column {column!r}: edges"
    if not isinstance(edges, Sequence) or isinstance(edges, str) or len(edges) < 2:
        raise InputError(f"{what}: expected a list of two or more numbers or dates, got {brief(edges)}.")
    times = [_time(edge) for edge in edges]
    strange = [edge for edge, time in zip(edges, times, strict=True) if not (_is_edge(edge) if None in times else time)]
    if strange:
        raise InputError(f"{what}: expected numbers, or dates (2020-01-31), all of one kind; got {brief(strange[0])}.")
    comparable = edges if None in times else times
    falling = [place for place, (a, b) in enumerate(pairwise(comparable)) if not a < b]
    if falling:
        first, second = edges[falling[0]], edges[falling[0] + 1]
        raise InputError(f"{what}: expected them to ascend, got {brief(first)} before {brief(second)}.")
    if labels is None:
        return
    if not isinstance(labels, Sequence) or isinstance(labels, str) or len(labels) != len(edges) - 1:
        raise InputError(
            f"recode: column {column!r}: labels: expected {len(edges) - 1}, one for each bin between {len(edges)} "
            f"edges; got {brief(labels)}."
        )
    strange = [label for label in labels if not is_plain(label)]
    if strange or len(set(texts_of(labels))) < len(labels):
        raise InputError(
            f"recode: column {column!r}: labels: expected different texts or numbers, got {brief(labels)}."
        )


def _is_edge(edge: Any) -> bool:
    return is_number(edge) and edge == edge
