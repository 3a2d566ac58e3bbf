"""All treatments, by their word in a plan."""

from __future__ import annotations

from collections.abc import Mapping

from .base import Treatment

_CLASSES: tuple[type[Treatment], ...] = ()

TREATMENTS: Mapping[str, type[Treatment]] = {kind.do: kind for kind in _CLASSES}
