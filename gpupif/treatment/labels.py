"""Labels: texts such as "<3" that a treatment puts into a column of numbers, and that later treatments leave."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..encoding.plain_values import family, texts
from ..errors import InputError
from ..utils.validation import brief


class UnreadableValueError(InputError):
    """A value that a treatment cannot read, among texts of which it reads others. came: the value."""

    def __init__(self, column: Hashable, expected: str, came: Any, mend: str) -> None:
        self.column, self.expected, self.came = column, expected, came
        super().__init__(f"column {column!r}: expected {expected}, got {brief(came)}. {mend}")


class Labelled(NamedTuple):
    """A column in which treatments have put texts in place of other values.

    labels: words for the treatment that put it there, such as "treatment 1 (cap)", by label. Numbers stay beside them.
    kind: Arrow type of the values beside the labels, before they became texts if they were numbers.
    made: words for the treatment that made all values texts. "" if they were texts in the table.
    """

    labels: Mapping[str, str]
    kind: pa.DataType
    made: str

    def beside(self, mapper: Callable[[pa.Array], pa.Array], instead: str | None) -> Callable[[pa.Array], pa.Array]:
        """Return the function of values that gives `mapper` all but the labels, in their type before.

        instead: the text that replaces labels. None: they stay.
        """
        labels = pa.array(list(self.labels), pa.string())

        def mapped(values: pa.Array) -> pa.Array:
            if family(values.type) != "text":
                return mapper(values)
            others = pc.invert(pc.is_in(values, labels.cast(values.type)))
            numbers = values.filter(others)
            # A text that is neither label nor number is refused by the mapper.
            with contextlib.suppress(pa.ArrowInvalid):
                numbers = numbers.cast(self.kind)
            new = texts(mapper(numbers)).cast(values.type)
            places = np.cumsum(others) - 1
            left = values if instead is None else pa.scalar(instead, values.type)
            return pc.if_else(others, new.take(pa.array(places, mask=places < 0)), left)

        return mapped


@contextlib.contextmanager
def explained(labelled: Mapping[Hashable, Labelled], do: str) -> Iterator[None]:
    """Say in errors about a label which treatment put it there.

    labelled: by column name. do: the word of the treatment that cannot read the label.
    """
    try:
        yield
    except UnreadableValueError as error:
        known = labelled.get(error.column)
        by = "" if known is None else known.labels.get(error.came, known.made)
        if not by:
            raise
        mend = f"It comes from {by}: put {do} before that one."
        raise UnreadableValueError(error.column, error.expected, error.came, mend) from None
