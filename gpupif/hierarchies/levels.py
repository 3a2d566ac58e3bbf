"""Whether there is a level of the hierarchy of a column."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from ..errors import InputError, did_you_mean
from ..utils.validation import brief, is_whole
from .base import Hierarchy


def hierarchy_with_level(hierarchies: Mapping[Hashable, Hierarchy], column: Hashable, level: Any) -> Hierarchy:
    """The hierarchy of a column; raises InputError where there is none, or it has no such level (0 to its height)."""
    if column not in hierarchies:
        listed = f" There are some for {', '.join(map(repr, hierarchies))}." if hierarchies else ""
        raise InputError(
            f"level: column {column!r} has no hierarchy.{did_you_mean(str(column), map(str, hierarchies))}{listed} If "
            "the name is right, add one to the hierarchies of the plan, such as { widths = [5, 10, 20] } for numbers."
        )
    hierarchy = hierarchies[column]
    if not is_whole(level) or not 0 <= level <= hierarchy.height:
        raise InputError(
            f"level: expected a whole number from 0 to {hierarchy.height}, the top of the hierarchy of {column!r}; got "
            f"{brief(level)}."
        )
    return hierarchy
