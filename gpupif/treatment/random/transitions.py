"""Values replaced by chance: the exact probability that one becomes another, and estimates from the result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gpupif.kernels.drawn_values import ITSELF

from ...encoding.plain_values import texts, texts_of
from ...errors import InputError
from ...rows.keys import code_type
from ...utils.validation import brief
from ..coded_columns import CodedColumn, ColumnValues
from ..steps import Chunk, Step
from .draws import Draws, Entries

if TYPE_CHECKING:
    import pandas as pd


ALL = 1 << 64
BELOW_ONE = np.nextafter(1.0, 0.0)
# Where less depends on what was there, digits of floats end.
LEAST = 1e-12
# Of a state with one entry, where that begins.
NOTHING = np.zeros(1, np.uint64)


@dataclass(frozen=True)
class Domain:
    """The states that a row may be in: the value of a label, or, last, none. randomised: how many of them are drawn for
    and drawn, either all or those with a value; a state that is not stays.
    """

    labels: pa.Array
    randomised: int

    @property
    def states(self) -> int:
        """How many there are."""
        return len(self.labels) + 1


class Transitions(ABC):
    """Probabilities by state, exact: what is drawn with, and what estimates are made by.

    entries: see `Draws.values_of_rows`.
    """

    entries: Entries

    @abstractmethod
    def matrix(self) -> npt.NDArray[np.float64]:
        """P(y given x) in row x and column y, of the states that are drawn for."""

    @abstractmethod
    def estimated(self, shares: npt.NDArray[np.float64], rows: int) -> tuple[npt.NDArray[np.float64], ...]:
        """The shares of the states before, unbiased, and their standard errors, from those recorded in so many rows.

        Rows are taken as drawn from a population, so that the error has that of the sample in it. Raises LinAlgError
        where what is recorded depends too little on what was there.
        """


class KeepOrReplace(Transitions):
    """A state is kept, or replaced by one that is drawn without a look at it.

    kept, replaced: numbers out of 2^64; what is left to 2^64 is kept as well.
    """

    def __init__(self, replaced: Sequence[int], states: int) -> None:
        self.replaced = list(replaced)
        self.kept = ALL - sum(self.replaced)
        firsts, values, used = [], [], 0
        for value, amount in ((ITSELF, self.kept), *enumerate(self.replaced)):
            if amount:
                firsts.append(used)
                values.append(value)
                used += amount
        shared, alone = len(firsts), states - len(self.replaced)
        begins = np.array([0] * len(self.replaced) + [shared] * alone, np.int64)
        ends = np.array([shared] * len(self.replaced) + [shared + 1] * alone, np.int64)
        self.entries = Entries(begins, ends, np.array([*firsts, 0], np.uint64), np.array([*values, ITSELF], np.int64))

    @property
    def keep(self) -> Fraction:
        """The probability t to be kept, beside that of being replaced by itself."""
        return Fraction(self.kept, ALL)

    def matrix(self) -> npt.NDArray[np.float64]:
        drawn = np.array([amount / ALL for amount in self.replaced])
        return np.eye(len(drawn)) * float(self.keep) + drawn  # type: ignore[no-any-return]

    def estimated(self, shares: npt.NDArray[np.float64], rows: int) -> tuple[npt.NDArray[np.float64], ...]:
        if self.keep < LEAST:
            raise np.linalg.LinAlgError
        keep, drawn = float(self.keep), np.array([amount / ALL for amount in self.replaced])
        return (shares - drawn) / keep, np.sqrt(shares * (1 - shares) / rows) / keep


class Matrix(Transitions):
    """A distribution for each state. rows: P(y given x) in row x and column y; each adds up to 1."""

    def __init__(self, rows: npt.NDArray[np.float64], states: int) -> None:
        self._rows = rows
        firsts, values = [], []
        for state, row in enumerate(rows):
            # The state itself first: most stay.
            order = np.flatnonzero(np.ldexp(row, 64) >= 1)
            order = np.concatenate([order[order == state], order[order != state]])
            amounts = whole_amounts(row[order])
            firsts.append(np.cumsum(amounts) - amounts)
            values.append(order)
        alone = states - len(rows)
        firsts += [NOTHING] * alone
        values += [np.array([ITSELF])] * alone
        ends = np.cumsum([len(one) for one in firsts])
        begins = np.append(0, ends[:-1])
        self.entries = Entries(begins, ends, np.concatenate(firsts), np.concatenate(values).astype(np.int64))

    def matrix(self) -> npt.NDArray[np.float64]:
        return self._rows

    def estimated(self, shares: npt.NDArray[np.float64], rows: int) -> tuple[npt.NDArray[np.float64], ...]:
        if np.linalg.cond(self._rows) > 1 / LEAST:
            raise np.linalg.LinAlgError
        inverse = np.linalg.inv(self._rows.T)
        found = inverse @ shares
        # Of multinomial shares the covariance is (diag(q) - q q') / N.
        variances = (inverse**2 @ shares - found**2) / rows
        return found, np.sqrt(np.maximum(variances, 0.0))


def whole_amounts(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """Probabilities in whole numbers out of 2^64, cut off; the largest gets what is left."""
    amounts = np.ldexp(np.minimum(probabilities, BELOW_ONE), 64).astype(np.uint64)
    largest = np.argmax(probabilities)
    # In words of 64 bits 2^64 is 0; so is a single one's amount.
    amounts[largest : largest + 1] -= amounts.sum(dtype=np.uint64)
    return amounts


def estimate(column: Hashable, values: ColumnValues, domain: Domain, transitions: Transitions) -> pd.DataFrame:
    """One row for each value that was drawn for: value, share, standard_error and rows (the share of all, in rows).

    values: of the treated column. Shares are unbiased, so that some may be below 0 or above 1; they are of the rows
    with a value where missing ones were left alone. Raises InputError where nothing can be estimated.
    """
    labels = domain.labels
    found = values.labels if values.labels.type == labels.type else values.labels.cast(labels.type)
    places = pc.index_in(found, labels)
    if places.null_count:
        other = found.filter(pc.is_null(places))[0].as_py()
        raise InputError(
            f"estimates: column {column!r} has {brief(other)}, which is not among the {len(labels):,} values that were "
            "randomised. Estimates are of the column as it was randomised; treat it no further before."
        )
    counts = np.zeros(domain.states, np.int64)
    counts[places.to_numpy()] = values.counts
    counts[-1] = values.missing
    counts = counts[: domain.randomised]
    rows = int(counts.sum())
    if not rows:
        raise InputError(f"estimates: column {column!r} has no rows with a value.")
    try:
        shares, errors = transitions.estimated(counts / rows, rows)
    except np.linalg.LinAlgError:
        raise InputError(
            f"estimates: what column {column!r} has now does not depend enough on what it had to tell that. "
            "Keep more: keep= above 0, or a matrix that can be inverted."
        ) from None
    known = pa.concat_arrays([labels, pa.nulls(domain.randomised - len(labels), labels.type)])
    return pd.DataFrame(
        {"value": known.to_pandas(), "share": shares, "standard_error": errors, "rows": shares * rows},
    )


KEEP, CATEGORY = "keep", "category"


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

    @property
    def writes(self) -> Sequence[Hashable]:
        return (self.column,)

    def apply(self, chunk: Chunk) -> None:
        column = chunk[self.column]
        places = pc.index_in(column.labels, self.domain.labels).fill_null(0).to_numpy(zero_copy_only=False)
        states = np.append(places, len(self.domain.labels)).astype(np.int64)
        codes = self.draws.values_of_rows(chunk.start, column.codes, states, self.transitions.entries)
        chunk[self.column] = CodedColumn(codes, self.domain.labels)

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
    def of(cls, column: CodedColumn) -> Present:
        """A column of a piece, whose labels are often those of the whole table."""
        missing = column.codes == len(column.labels)
        there = np.zeros(len(column.labels) + 1, np.bool_)
        there[column.codes] = True
        used = np.flatnonzero(there[:-1])
        numbers = np.cumsum(there) - 1
        return cls(missing, column.labels.take(pa.array(used)), numbers[column.codes[~missing]])


def column_of(values: pa.Array, missing: npt.NDArray[np.bool_]) -> CodedColumn:
    """A column from whether rows have no value, and from the values of those that have."""
    encoded = values.dictionary_encode()
    labels = encoded.dictionary
    codes = np.full(len(missing), len(labels), code_type(len(labels) + 1))
    codes[~missing] = encoded.indices.to_numpy()
    return CodedColumn(codes, labels)
