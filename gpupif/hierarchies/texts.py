"""Values known by their texts, as files and plans have them: 39 by "39", a date by "2001-05-17"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..attack.priors import plain_value, texts_of


def text_of(value: Any) -> str:
    """The text that a value is known by in whatever type a table has it: "39" for 39, 39.0 and "39"."""
    return value if type(value) is str else texts_of(plain_value(value))[-1]


def text_places(values: pa.Array, texts: Sequence[str] | pa.Array) -> npt.NDArray[np.int64]:
    """For each value the place of its text among some texts, all different; -1 where it is not there.

    Of several that are texts of one value, the first.
    """
    texts = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.string())
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_date32(kind):
        found = pc.index_in(values.cast(pa.string()), texts)
        return found.fill_null(-1).to_numpy().astype(np.int64)  # type: ignore[no-any-return]
    of_value = {text: place for place, value in enumerate(values.to_pylist()) for text in texts_of(plain_value(value))}
    places = np.full(len(values), -1)
    for number, text in enumerate(texts.to_pylist()):
        place = of_value.get(text)
        if place is not None and places[place] < 0:
            places[place] = number
    return places
