"""Values known by their texts, as files and plans have them: 39 by "39", a date by "2001-05-17"."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..attack.priors import plain_value, texts_of
from ..encoding.plain_values import text_of, texts
from ..errors import InputError
from ..utils.validation import brief


def as_texts(said: str, given: Iterable[Hashable]) -> list[str]:
    """Values, or names, as texts; raises InputError for what has none. said: what errors call them."""
    return [value if isinstance(value, str) else _as_text(said, value) for value in given]


def _as_text(said: str, value: Any) -> str:
    value = plain_value(value)
    try:
        if value is not None:
            return text_of(value)
    except pa.ArrowException:
        pass
    raise InputError(f"{said}: expected text, numbers, dates and the like, got {brief(value)}.")


def text_places(values: pa.Array, keys: pa.Array) -> npt.NDArray[np.int64]:
    """For each value the place of its text among some texts, all different; -1 where it is not there.

    A value may have several texts, as in `gpupif.score`'s priors: 39.0 is also known as "39".
    """
    places: npt.NDArray[np.int64] = np.asarray(pc.index_in(texts(values), keys).fill_null(-1)).astype(np.int64)
    kind = values.type
    strange = np.flatnonzero(places < 0)
    if pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_date32(kind) or not len(strange):
        return places
    place_of = {text: place for place, text in enumerate(keys.to_pylist())}
    for place, value in zip(strange, values.take(pa.array(strange)).to_pylist(), strict=True):
        known = (place_of[text] for text in texts_of(plain_value(value)) if text in place_of)
        places[place] = next(known, -1)
    return places
