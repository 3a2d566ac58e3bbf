"""Recoding: values are replaced by groups, from a level of a hierarchy, a mapping, or bins between edges."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...encoding.plain_values import text_of, texts, texts_of
from ...errors import ColumnTypeError, InputError
from ...hierarchies.date_units import DateUnits
from ...hierarchies.hierarchy import Hierarchy, hierarchy_with_level
from ...hierarchies.intervals import Intervals
from ...utils.validation import brief
from ..field_checks import is_finite, whole
from ..treatment import Mapper, Tools, TreatedTable, ValueMap
from .new_values import Groups, checked_texts, is_plain, kept, labels_of, numbers, typed

# What a plan says for values without a group; Python takes it too.
UNMAPPED = "unmapped = 'suppress' (they become missing) or 'keep'"


def by_edges(column: Hashable, edges: Sequence[Any], labels: Sequence[Any] | None) -> Groups:
    """Return the groups of bins: each holds values from an edge up to, not including, the next edge."""
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
            exact = numbers(column, values, "Bins are of numbers and of dates; give mapping for other values.")
            bins, known = exact.bins(edges), exact.known
        placed = known & (bins > 0) & (bins < len(edges))
        return typed(column, names, values.type).take(pa.array(bins - 1, mask=~placed)), placed

    return groups


def _instants(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return dates and times by the clock of their zone: int64 (values,), in microseconds from 1970."""
    if pa.types.is_timestamp(values.type) and values.type.tz:
        values = pc.local_timestamp(values)
    # An unsafe cast only drops fractions of a microsecond.
    return values.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_numpy()  # type: ignore[no-any-return]


def _time(edge: Any) -> datetime.datetime | None:
    """Return an edge as a date and time; None if it is neither a date nor the text of a date."""
    if isinstance(edge, datetime.datetime):
        return edge
    if isinstance(edge, datetime.date):
        return datetime.datetime.combine(edge, datetime.time())
    try:
        return datetime.datetime.fromisoformat(edge)
    except (TypeError, ValueError):
        return None


def _edge_text(edge: Any) -> str:
    return str(edge) if isinstance(edge, str | int) else "inf" if edge == math.inf else text_of(edge)


def check_edges(column: Hashable, edges: Any, labels: Any) -> None:
    """Raise InputError for edges that are not ascending numbers or dates, and for labels that do not fit the bins."""
    said = f"recode: column {column!r}: edges"
    if not isinstance(edges, Sequence) or isinstance(edges, str) or len(edges) < 2:
        raise InputError(f"{said}: expected a list of two or more numbers or dates, got {brief(edges)}.")
    times = [_time(edge) for edge in edges]
    strange = [edge for edge, time in zip(edges, times, strict=True) if not (_is_edge(edge) if None in times else time)]
    if strange:
        raise InputError(f"{said}: expected numbers, or dates (2020-01-31), all of one kind; got {brief(strange[0])}.")
    comparable = edges if None in times else times
    falling = [place for place, (a, b) in enumerate(pairwise(comparable)) if not a < b]
    if falling:
        first, second = edges[falling[0]], edges[falling[0] + 1]
        raise InputError(f"{said}: expected them to ascend, got {brief(first)} before {brief(second)}.")
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
    return is_finite(edge) or (isinstance(edge, float) and math.isinf(edge))


@dataclass(frozen=True)
class Recode(ValueMap):
    """Replace values by groups: by a level of a hierarchy, by a mapping, or by bins between edges.

    Give exactly one of `level`, `mapping` and `edges`.

    column: name of the column.
    level: level of the column's hierarchy in the plan. Level 0 changes nothing.
    mapping: dictionary of the new value by the old value, or by its text. None suppresses a value.
    edges: ascending list of numbers or dates. A bin holds values from an edge up to, not including, the next edge. The
        first and the last edge may be infinite.
    labels: list of the names of the bins. Default None: names such as ``[18, 65)``.
    unmapped: the rule for a value without a group: ``"error"``, ``"suppress"``, which makes it missing, or ``"keep"``.
        Default ``"error"``.

    Bins, and hierarchies of numbers and dates, leave labels that treatments before put in place of values; to mappings
    and other hierarchies labels are values. Missing values stay missing, except at the top of a hierarchy, where all
    cells are one group. Names of groups and
    bins are texts. A mapping to numbers gives numbers, unless texts are kept beside them.

    Raises InputError for a value without a group under ``"error"``, for a level that the hierarchy lacks, and for dates
    under edges that are numbers. Raises ColumnTypeError for other values than dates under edges that are dates, and for
    values other than numbers and dates under edges that are numbers.
    """

    do: ClassVar[str] = "recode"
    value_lists: ClassVar[Sequence[str]] = ("mapping",)
    level: Annotated[int | None, whole("levels", 0)] = None
    mapping: Mapping[Any, Any] | None = None
    edges: Sequence[Any] | None = None
    labels: Sequence[Any] | None = None
    unmapped: Literal["error", "suppress", "keep"] = "error"

    def check(self) -> None:
        super().check()
        given = [name for name in ("level", "mapping", "edges") if getattr(self, name) is not None]
        if len(given) != 1:
            raise InputError(
                f"recode: column {self.column!r}: expected one of level, mapping and edges, got "
                f"{' and '.join(given) or 'none'}."
            )
        if self.labels is not None and self.edges is None:
            raise InputError(f"recode: column {self.column!r}: labels are of edges. Leave them out, or give edges.")
        if self.mapping is not None:
            _check_mapping(self.column, self.mapping)
        elif self.edges is not None:
            check_edges(self.column, self.edges, self.labels)

    def check_hierarchies(self, hierarchies: Mapping[Hashable, Hierarchy]) -> None:
        if self.level is not None:
            hierarchy_with_level(hierarchies, self.column, self.level)

    @property
    def own_labels(self) -> Sequence[str]:
        new = self.mapping.values() if self.mapping is not None and self.unmapped == "keep" else ()
        return [label for value in new for label in labels_of(value)]

    @property
    def keeps_numbers(self) -> bool:
        new = () if self.mapping is None else self.mapping.values()
        return len(self.own_labels) == sum(value is not None for value in new)

    def reads_numbers(self, hierarchies: Mapping[Hashable, Hierarchy]) -> bool:
        is_number_tree = bool(self.level) and isinstance(hierarchies[self.column], Intervals | DateUnits)
        return self.edges is not None or is_number_tree

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        groups = self._groups(tools)

        def recoded(values: pa.Array) -> pa.Array:
            if pa.types.is_null(values.type):
                return pa.array([], pa.string()) if self.level else values
            new, placed = groups(values)
            if self.unmapped == "error":
                self._check_placed(values, placed)
            return kept(new, placed, values) if self.unmapped == "keep" else new

        return (lambda values: values) if self.level == 0 else recoded

    def missing_value(self, tools: Tools) -> str | None:
        # At the top of a hierarchy, all cells are one group.
        if not self.level:
            return None
        hierarchy = self._hierarchy(tools)
        return hierarchy.root if self.level == hierarchy.height else None

    def _groups(self, tools: Tools) -> Groups:
        if self.mapping is not None:
            return by_mapping(self.column, self.mapping)
        if self.edges is not None:
            return by_edges(self.column, self.edges, self.labels)
        return by_hierarchy(self._hierarchy(tools), self.level or 0, self.unmapped == "error")

    def _hierarchy(self, tools: Tools) -> Hierarchy:
        return hierarchy_with_level(tools.hierarchies, self.column, self.level or 0)

    def _check_placed(self, values: pa.Array, placed: npt.NDArray[np.bool_]) -> None:
        if placed.all():
            return
        strange = values.filter(pa.array(~placed))
        named = ", ".join(brief(value) for value in strange[:5].to_pylist())
        more = f" and {len(strange) - 5:,} more" if len(strange) > 5 else ""
        where = "mapping" if self.mapping is not None else "bins"
        raise InputError(
            f"recode: column {self.column!r}: no place in the {where} for {named}{more}. Add one, or give a rule "
            f"for them: {UNMAPPED}."
        )


def by_hierarchy(hierarchy: Hierarchy, level: int, strict: bool) -> Groups:
    """Return the groups of a level. strict: whether the hierarchy raises an error for values without a group."""

    def groups(values: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        mend = f", or give a rule for them: {UNMAPPED}"
        groups = hierarchy.groups(values, level, mend) if strict else hierarchy.groups_or_null(values, level)
        return groups, np.asarray(groups.is_valid())

    return groups


def by_mapping(column: Hashable, mapping: Mapping[Any, Any]) -> Groups:
    """Return the groups of a mapping, which is applied to the texts of values."""
    old = pa.array(texts_of(mapping))
    new = list(mapping.values())

    def groups(values: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        written = texts(values)
        place = pc.index_in(written, old.cast(written.type))
        return typed(column, new, values.type).take(place), np.asarray(place.is_valid())

    return groups


def _check_mapping(column: Hashable, mapping: Any) -> None:
    said = f"recode: column {column!r}: mapping"
    if not mapping:
        raise InputError(f"{said}: expected a dictionary with the new value by the old one, got {brief(mapping)}.")
    strange = [new for new in mapping.values() if new is not None and not is_plain(new)]
    if strange:
        raise InputError(f"{said}: expected texts, numbers or booleans as new values, got {brief(strange[0])}.")
    repeated = [text for text, count in Counter(checked_texts(said, mapping)).items() if count > 1]
    if repeated:
        raise InputError(f"{said}: {repeated[0]!r} is given twice, as values of two types. Keep one of the two.")
