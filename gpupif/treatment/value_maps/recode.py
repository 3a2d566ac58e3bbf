"""Values put together in groups: by a level of a hierarchy, a mapping, or the edges of bins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...encoding.plain_values import texts, texts_of
from ...errors import InputError
from ...hierarchies.base import Hierarchy
from ...hierarchies.levels import hierarchy_with_level
from ...utils.validation import brief, check_word, whole_number
from ..base import Mapper, Tools, ValueMap, WorkingTable
from .bins import by_edges, check_edges
from .new_values import Groups, is_plain, kept, typed

UNMAPPED = ("error", "suppress", "keep")


@dataclass(frozen=True)
class Recode(ValueMap):
    """Put groups in the place of values; exactly one of `level`, `mapping` and `edges` says which.

    level: of the column's hierarchy in the plan; 0 leaves values as they are. mapping: the new value by the old one,
    or by its text; None suppresses a value. edges: ascending numbers, or dates; a bin goes from one up to, and not
    including, the next. The first and the last may be infinite. labels: of the bins; default ``[18, 65)``.

    unmapped: what becomes of a value that has no place in it: ``"error"``; ``"suppress"``, it becomes a missing value;
    ``"keep"``. Missing values stay missing, except at the top of a hierarchy, where all cells are one group. Names of
    groups and bins are texts; a mapping to numbers alone makes numbers, unless texts are kept beside them.
    """

    do: ClassVar[str] = "recode"
    value_lists: ClassVar[Sequence[str]] = ("mapping",)
    level: int | None = None
    mapping: Mapping[Any, Any] | None = None
    edges: Sequence[Any] | None = None
    labels: Sequence[Any] | None = None
    unmapped: Literal["error", "suppress", "keep"] = "error"

    def check(self) -> None:
        given = [name for name in ("level", "mapping", "edges") if getattr(self, name) is not None]
        if len(given) != 1:
            raise InputError(
                f"recode: column {self.column!r}: expected one of level, mapping and edges, got "
                f"{' and '.join(given) or 'none'}."
            )
        check_word("recode: unmapped", self.unmapped, UNMAPPED)
        if self.labels is not None and self.edges is None:
            raise InputError(f"recode: column {self.column!r}: labels are of edges. Leave them out, or give edges.")
        if self.level is not None:
            whole_number("recode: level", self.level, "levels", least=0)
        elif self.mapping is not None:
            _check_mapping(self.column, self.mapping)
        else:
            check_edges(self.column, self.edges, self.labels)

    def check_hierarchies(self, hierarchies: Mapping[Hashable, Hierarchy]) -> None:
        if self.level is not None:
            hierarchy_with_level(hierarchies, self.column, self.level)

    def mapper(self, table: WorkingTable, tools: Tools) -> Mapper:
        groups = self._groups(tools)

        def recoded(values: pa.Array) -> pa.Array:
            if pa.types.is_null(values.type):
                return pa.array([], pa.string()) if self.level else values
            new, placed = groups(values)
            if self.unmapped == "error":
                self._check_placed(values, placed)
            return kept(new, placed, values) if self.unmapped == "keep" else new

        return (lambda values: values) if self.level == 0 else recoded

    def of_missing(self, tools: Tools) -> str | None:
        # At the top of a hierarchy all cells are alike.
        if not self.level:
            return None
        hierarchy = self._hierarchy(tools)
        return hierarchy.root if self.level == hierarchy.height else None

    def _groups(self, tools: Tools) -> Groups:
        if self.mapping is not None:
            return by_mapping(self.mapping)
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
            f"recode: column {self.column!r}: no place in the {where} for {named}{more}. Add one, or say what becomes "
            "of them: unmapped='suppress' or 'keep'."
        )


def by_hierarchy(hierarchy: Hierarchy, level: int, strict: bool) -> Groups:
    """Groups of a level. strict: whether the hierarchy says which values it has no place for."""

    def groups(values: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        mend = ", or say by unmapped= what becomes of them"
        found = hierarchy.groups(values, level, mend) if strict else hierarchy.groups_or_null(values, level)
        return found, np.asarray(found.is_valid())

    return groups


def by_mapping(mapping: Mapping[Any, Any]) -> Groups:
    """New values by the texts of the old ones."""
    old = pa.array(texts_of(mapping))
    new = list(mapping.values())

    def groups(values: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        written = texts(values)
        place = pc.index_in(written, old.cast(written.type))
        return typed(new, values.type).take(place), np.asarray(place.is_valid())

    return groups


def _check_mapping(column: Hashable, mapping: Any) -> None:
    what = f"recode: column {column!r}: mapping"
    if not isinstance(mapping, Mapping) or not mapping:
        raise InputError(f"{what}: expected a dictionary with the new value by the old one, got {brief(mapping)}.")
    strange = [new for new in mapping.values() if new is not None and not is_plain(new)]
    if strange:
        raise InputError(f"{what}: expected texts, numbers or booleans as new values, got {brief(strange[0])}.")
    repeated = [text for text, times in Counter(texts_of(mapping)).items() if times > 1]
    if repeated:
        raise InputError(f"{what}: {repeated[0]!r} stands in it twice, as values of two types. Keep one of the two.")
