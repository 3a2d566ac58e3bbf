"""The treatments, by their words in a plan."""

from __future__ import annotations

from .base import Treatment
from .value_maps.drop import Drop
from .value_maps.recode import Recode

TREATMENTS: dict[str, type[Treatment]] = {
    kind.do: kind
    for kind in (
        Drop,
        Recode,
    )
}
