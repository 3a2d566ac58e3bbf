"""What values are part of, level by level: the dictionary of a hierarchy, checked to be a tree of equal depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ..errors import InputError
from ..utils.validation import brief


def paths_up(said: str, given: Mapping[Any, Any], where: str = "") -> dict[Any, list[Any]]:
    """For each value the names of what it is part of, the narrowest first; a single name may stand alone.

    Raises InputError where these are not as many for each value, or the same name is part of several. said: what errors
    call the column; where: the hierarchy came from.
    """
    paths = {value: names if type(names) is list else _listed(names) for value, names in given.items()}
    try:
        set(chain.from_iterable(paths.values()))
    except TypeError:
        raise InputError(f"{said}: expected names of what values are part of, got lists in lists.") from None
    depths = {len(path) for path in paths.values()}
    if len(depths) > 1:
        raise InputError(
            f"{said}: the hierarchy{where} is no tree of equal depth: expected as many names for each value, got "
            f"{min(depths)} to {max(depths)}. Repeat a name where a level is missing."
        )
    levels = list(zip(*paths.values(), strict=True))
    for level in range(1, len(levels)):
        pairs = set(zip(levels[level - 1], levels[level], strict=True))
        if len(pairs) > len({child for child, _ in pairs}):
            _refuse(said, where, level, paths)
    return paths


def _listed(names: Any) -> list[Any]:
    return [names] if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray) else list(names)


def _refuse(said: str, where: str, level: int, paths: Mapping[Any, Sequence[Any]]) -> None:
    """Raise InputError for two values that are one group at a level, from 1, and not at the next."""
    first: dict[Any, Any] = {}
    for value, path in paths.items():
        other = first.setdefault(path[level - 1], value)
        if paths[other][level] != path[level]:
            raise InputError(
                f"{said}: the hierarchy{where} is no tree: {path[level - 1]!r} is part of {path[level]!r} and of "
                f"{paths[other][level]!r}: levels {level} and {level + 1} of {brief(value)} and of {brief(other)}. "
                "What is one group at a level has to be one at all above; rename one of the two."
            )
