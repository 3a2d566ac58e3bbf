"""All treatments, by their word in a plan."""

from __future__ import annotations

from collections.abc import Mapping

from .base import Treatment
from .random.jitter import Jitter
from .random.noise import Noise
from .random.pram import Pram
from .random.randomized_response import RandomizedResponse
from .random.shift_dates import ShiftDates
from .random.swap import Swap
from .suppression.suppress import Suppress
from .suppression.suppress_rows import SuppressRows
from .value_maps.drop import Drop
from .value_maps.recode import Recode

# One to a line, so that several may be added at once.
_CLASSES: tuple[type[Treatment], ...] = (
    Drop,
    Recode,
    Suppress,
    SuppressRows,
    Jitter,
    Noise,
    Pram,
    RandomizedResponse,
    ShiftDates,
    Swap,
)

TREATMENTS: Mapping[str, type[Treatment]] = {kind.do: kind for kind in _CLASSES}
