"""What random treatments have in common."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...encoding.plain_values import texts, texts_of
from ...errors import InputError
from ...rows.keys import code_type
from ...utils.validation import brief
from ..base import ColumnValues, Piece, PieceColumn, Step, Tools
from ..randomness.draws import Draws
from .estimates import estimate
from .transitions import Domain, Transitions

if TYPE_CHECKING:
    import pandas as pd

KEEP, CATEGORY = "keep", "category"


def draws_for(do: str, tools: Tools, column: Hashable, purpose: str = "") -> Draws:
    """The random numbers of a treatment; raises InputError where there is no key to draw them by."""
    if tools.key is None:
        raise InputError(
            f"key: {do} of column {column!r} draws by a secret key, and none was given. Give key= (gpupif.Key.new(), "
            "or the path of a file with 32 bytes), or --key-file."
        )
    return tools.key.draws(tools.number, column, purpose)


def check_missing_rule(said: str, missing: Any, words: Sequence[str]) -> None:
    """Raise InputError where the rule for missing values is none of these words, nor None."""
    if missing is not None and missing not in words:
        raise InputError(f"{said}: missing: expected {' or '.join(map(repr, words))}, got {brief(missing)}.")


def domain_of(column: Hashable, found: ColumnValues, given: Sequence[Any] | None, missing: str | None) -> Domain:
    """The states that are drawn for: values given, or those that the table has. Raises InputError where that is not
    said of missing values, or where the table has a value that was not given.
    """
    if found.missing and missing is None:
        raise InputError(
            f"column {column!r}: {found.missing:,} missing values, and no rule for them. Say missing='category', one "
            "value more that is randomised like others, or missing='keep', which leaves them missing and so shows them."
        )
    labels = found.labels if given is None else labels_of(column, given, found.labels)
    return Domain(labels, len(labels) + (missing == CATEGORY))


def labels_of(column: Hashable, given: Sequence[Any], labels: pa.Array) -> pa.Array:
    """Values as given in a plan, in the type of a column, where texts stand for what they are the text of.

    Raises InputError where a value cannot be one of the column, or the column has one that is not among them.
    """
    words = texts_of(given)
    known = pa.array(words, pa.string())
    own = texts(labels)
    absent = pc.index_in(own, known).is_null()
    if pc.any(absent).as_py():
        raise InputError(
            f"column {column!r}: the value {brief(labels.filter(absent)[0].as_py())} of the table is not among the "
            f"{len(words):,} that were given. Add it, or recode it first."
        )
    try:
        made = pa.concat_arrays([labels, known.filter(pc.index_in(known, own).is_null()).cast(labels.type)])
    except pa.ArrowException:
        raise InputError(
            f"column {column!r}: expected values of type {labels.type}, got {brief(list(given))}."
        ) from None
    if len(made.unique()) < len(made) or len(made) < len(words):
        raise InputError(f"column {column!r}: a value was given twice in {brief(list(given))}.")
    # In the order given, whatever the table has.
    return made.take(pc.index_in(known, texts(made)))


@dataclass(frozen=True)
class TransitionStep(Step):
    """Values replaced by what is drawn for them, row by row. facts: what the record says; hidden: of these, what a
    public one leaves out.
    """

    column: Hashable
    draws: Draws
    domain: Domain
    transitions: Transitions
    facts: Mapping[str, Any]
    hidden: Sequence[str] = ()

    def apply(self, piece: Piece) -> None:
        column = piece[self.column]
        places = pc.index_in(column.labels, self.domain.labels).fill_null(0).to_numpy(zero_copy_only=False)
        states = np.append(places, len(self.domain.labels)).astype(np.int64)
        codes = self.draws.values_of_rows(piece.start, column.codes, states, self.transitions.entries)
        piece[self.column] = PieceColumn(codes, self.domain.labels)

    def record(self) -> dict[str, Any]:
        return dict(self.facts)

    def revealing(self) -> Sequence[str]:
        return self.hidden

    def estimates(self, column: Hashable, values: ColumnValues) -> pd.DataFrame | None:
        return estimate(column, values, self.domain, self.transitions) if column == self.column else None


class Present(NamedTuple):
    """The cells of a column that have a value. missing: by row, whether it has none; labels: those that occur; places:
    of each other row, the number of its label.
    """

    missing: npt.NDArray[np.bool_]
    labels: pa.Array
    places: npt.NDArray[np.int64]

    @classmethod
    def of(cls, column: PieceColumn) -> Present:
        """A column of a piece, whose labels are often those of the whole table."""
        missing = column.codes == len(column.labels)
        there = np.zeros(len(column.labels) + 1, np.bool_)
        there[column.codes] = True
        used = np.flatnonzero(there[:-1])
        numbers = np.cumsum(there) - 1
        return cls(missing, column.labels.take(pa.array(used)), numbers[column.codes[~missing]])


def column_of(values: pa.Array, missing: npt.NDArray[np.bool_]) -> PieceColumn:
    """A column from whether rows have no value, and from the values of those that have."""
    encoded = values.dictionary_encode()
    labels = encoded.dictionary
    codes = np.full(len(missing), len(labels), code_type(len(labels) + 1))
    codes[~missing] = encoded.indices.to_numpy()
    return PieceColumn(codes, labels)
