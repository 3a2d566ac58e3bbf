"""All treatments, by their word in a plan."""

from __future__ import annotations

from collections.abc import Mapping

from .base import Treatment
from .dropped_columns import DeclaredColumns, Drop
from .random.jitter import Jitter
from .random.noise import Noise
from .random.pram import Pram
from .random.randomized_response import RandomizedResponse
from .random.shift_dates import ShiftDates
from .random.swap import Swap
from .suppression.suppress import Suppress, SuppressRows
from .value_maps.date_part import DatePart
from .value_maps.microaggregate import Microaggregate
from .value_maps.pooled_values import BottomCode, Cap, Rare, TopCode
from .value_maps.pseudonym import Pseudonym
from .value_maps.recode import Recode
from .value_maps.rounding import Round
from .value_maps.zip3 import Zip3

# One to a line, so that several may be added at once.
_CLASSES: tuple[type[Treatment], ...] = (
    DeclaredColumns,
    Drop,
    Recode,
    Cap,
    TopCode,
    BottomCode,
    Rare,
    DatePart,
    Zip3,
    Round,
    Pseudonym,
    Microaggregate,
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
