"""Transitions: exact probabilities that a value becomes another value, and estimates of the original shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gpupif.kernels.random_values import ITSELF

from ...encoding.plain_values import texts, texts_of
from ...errors import InputError
from ...utils.validation import brief
from ..coded_columns import CodedColumn, ColumnValues
from ..steps import Chunk, Step
from .draws import Draws, Entries
from .response_formulas import estimate_shares

if TYPE_CHECKING:
    import pandas as pd


ALL = 1 << 64
BELOW_ONE = np.nextafter(1.0, 0.0)
# Estimates are refused if the recorded values depend on the original values by less: floats have too few digits.
LEAST = 1e-12
# The `firsts` of a state with a single entry.
NOTHING = np.zeros(1, np.uint64)


@dataclass(frozen=True)
class Domain:
    """The states of a row: a state for each value, and a last state for a missing value.

    labels: Arrow array (values,). The value of each state except the last.
    randomised: int. The number of leading states that are randomised: all, or all with a value. The last state stays if
        it is not among them.
    """

    labels: pa.Array
    randomised: int

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.labels) + 1


class Transitions(ABC):
    """Exact probabilities of new states, by state. entries: the same probabilities in the form for drawing."""

    entries: Entries

    @abstractmethod
    def matrix(self) -> npt.NDArray[np.float64]:
        """Return P(y given x) in row x and column y, for the randomised states: float64 (states, states)."""

    @abstractmethod
    def estimated(self, shares: npt.NDArray[np.float64], rows: int) -> tuple[npt.NDArray[np.float64], ...]:
        """Return unbiased estimates of the original shares of states, and their standard errors: float64 (states,).

        shares: float64 (states,). The recorded shares. rows: number of recorded rows. The rows count as a random sample
        of a population: the standard error includes the error of the sample. Raises LinAlgError if the recorded states
        depend too little on the original states.
        """


class KeepOrReplace(Transitions):
    """Transitions that keep a state, or replace it by a state that is drawn independently of it.

    replaced: whole numbers (randomised states,). The probability of each replacement, out of 2^64.
    kept: whole number. The probability to keep a state, out of 2^64: the rest.
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
        """The probability t to keep a state, without the probability that it is replaced by itself."""
        return Fraction(self.kept, ALL)

    def matrix(self) -> npt.NDArray[np.float64]:
        drawn = np.array([amount / ALL for amount in self.replaced])
        return np.eye(len(drawn)) * float(self.keep) + drawn  # type: ignore[no-any-return]

    def estimated(self, shares: npt.NDArray[np.float64], rows: int) -> tuple[npt.NDArray[np.float64], ...]:
        if self.keep < LEAST:
            raise np.linalg.LinAlgError
        keep, drawn = float(self.keep), np.array([amount / ALL for amount in self.replaced])
        return estimate_shares(shares, rows, keep, drawn)


class Matrix(Transitions):
    """Transitions with a distribution for each state.

    rows: float64 (randomised states, randomised states). P(y given x) in row x and column y; each row adds up to 1.
    states: int. Number of all states, randomised or not.
    """

    def __init__(self, rows: npt.NDArray[np.float64], states: int) -> None:
        self._rows = rows
        firsts, values = [], []
        for state, row in enumerate(rows):
            # The state itself comes first, as most states stay.
            order = np.flatnonzero(np.ldexp(row, 64) >= 1)
            order = np.concatenate([order[order == state], order[order != state]])
            amounts = whole_amounts(row[order])
            firsts.append(np.cumsum(amounts) - amounts)
            values.append(order)
        alone = states - len(rows)
        firsts += [NOTHING] * alone
        values += [np.array([ITSELF])] * alone
        ends = np.cumsum([len(own) for own in firsts])
        begins = np.append(0, ends[:-1])
        self.entries = Entries(begins, ends, np.concatenate(firsts), np.concatenate(values).astype(np.int64))

    def matrix(self) -> npt.NDArray[np.float64]:
        return self._rows

    def estimated(self, shares: npt.NDArray[np.float64], rows: int) -> tuple[npt.NDArray[np.float64], ...]:
        if np.linalg.cond(self._rows) > 1 / LEAST:
            raise np.linalg.LinAlgError
        inverse = np.linalg.inv(self._rows.T)
        estimates = inverse @ shares
        # The covariance of multinomial shares q of N rows is (diag(q) - q q') / N.
        variances = (inverse**2 @ shares - estimates**2) / rows
        return estimates, np.sqrt(np.maximum(variances, 0.0))


def whole_amounts(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """Return probabilities as whole numbers out of 2^64, rounded down. The largest gets the rest up to 2^64."""
    amounts = np.ldexp(np.minimum(probabilities, BELOW_ONE), 64).astype(np.uint64)
    largest = np.argmax(probabilities)
    # In words of 64 bits 2^64 is 0. A single probability of 1 is stored as 0, too.
    amounts[largest : largest + 1] -= amounts.sum(dtype=np.uint64)
    return amounts


def estimate(column: Hashable, values: ColumnValues, domain: Domain, transitions: Transitions) -> pd.DataFrame:
    """Estimate how often each value occurred before a column was randomised.

    values: values of the treated column. domain, transitions: the states and probabilities of the treatment.

    Returns a DataFrame with a row for each randomised state: value, share, standard_error and rows (the share as a
    number of rows). Shares are unbiased: a share may be below 0 or above 1. They are shares of the rows with a value if
    missing values were not randomised. Raises InputError if nothing can be estimated.
    """
    labels = domain.labels
    recorded = values.labels if values.labels.type == labels.type else values.labels.cast(labels.type)
    places = pc.index_in(recorded, labels)
    if places.null_count:
        other = recorded.filter(pc.is_null(places))[0].as_py()
        raise InputError(
            f"estimates: column {column!r} has {brief(other)}, which is not among the {len(labels):,} values that were "
            "randomised. Estimate before a later treatment changes the column."
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
            f"estimates: the values of column {column!r} depend too little on its original values. "
            "Keep more: keep= above 0, or a matrix that can be inverted."
        ) from None
    known = pa.concat_arrays([labels, pa.nulls(domain.randomised - len(labels), labels.type)])
    return pd.DataFrame(
        {"value": known.to_pandas(), "share": shares, "standard_error": errors, "rows": shares * rows},
    )


CATEGORY = "category"


def domain_of(column: Hashable, observed: ColumnValues, given: Sequence[Any] | None, missing: str | None) -> Domain:
    """Return the states of a column's rows.

    observed: values of the table. given: possible values; None for the values of the table. missing: the rule for
    missing values, "category", "keep" or None. Raises InputError for missing values without a rule, and for a value of
    the table that was not given.
    """
    if observed.missing and missing is None:
        raise InputError(
            f"column {column!r}: {observed.missing:,} missing values, and no rule for them. Say missing='category', "
            "one value more that is randomised like others, or missing='keep', which leaves them missing and so shows "
            "them."
        )
    labels = observed.labels if given is None else labels_of(column, given, observed.labels)
    return Domain(labels, len(labels) + (missing == CATEGORY))


def labels_of(column: Hashable, given: Sequence[Any], labels: pa.Array) -> pa.Array:
    """Return the values of a plan in the type of a column, in the given order. A text may denote any value.

    labels: values of the column. Raises InputError for a value that the column's type cannot hold, for a repeated
    value, and for a value of the column that was not given.
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
    # The given order, which does not depend on the table.
    return made.take(pc.index_in(known, texts(made)))


@dataclass(frozen=True)
class TransitionStep(Step):
    """The prepared randomisation of a column by transitions."""

    draws: Draws
    domain: Domain
    transitions: Transitions

    def apply(self, chunk: Chunk) -> None:
        column = chunk[self.column]
        places = pc.index_in(column.labels, self.domain.labels).fill_null(0).to_numpy(zero_copy_only=False)
        states = np.append(places, len(self.domain.labels)).astype(np.int64)
        codes = self.draws.values_of_rows(chunk.start, column.codes, states, self.transitions.entries)
        chunk[self.column] = CodedColumn(codes, self.domain.labels)

    def estimates(self, column: Hashable, values: ColumnValues) -> pd.DataFrame | None:
        return estimate(column, values, self.domain, self.transitions) if column == self.column else None
