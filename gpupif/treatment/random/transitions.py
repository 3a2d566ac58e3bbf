"""Which value stands in the place of which, and how often, in whole numbers out of 2^64."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpupif.kernels.chacha20 import ITSELF

from ..randomness.draws import Entries

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
