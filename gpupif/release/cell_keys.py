"""Cell keys: noise of counts that depends on the rows of a cell alone, so that it is the same in every table.

Each row has a secret key of 64 bits, made from its record. The key of a cell is the sum of its rows' keys modulo 2^64.
It chooses the noise from a p-table. Who asks again, or asks for the same rows by another table, gets the same answer:
averages gain nothing. This is not differential privacy. Source: Fraser and Wooton, A proposed method for
confidentialising tabular output to protect against differencing, Joint UNECE/Eurostat work session on statistical data
confidentiality (2005); Thompson, Broadfoot and Elazar, Methodology for the automatic confidentialisation of statistical
outputs from remote servers at the Australian Bureau of Statistics (2013).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..encoding.column import numbers_of
from ..errors import InputError, OutputError
from ..frames.open import open_table
from ..utils.validation import check_exist

# Probabilities of a count sum to 1 up to this.
ROUNDING = 1e-9
COLUMNS = ("count", "noise", "probability")
# The default: noise of mean 0 and of at most 2; a count of 1 becomes 0, 1 or 2. The last count is for all higher ones.
DEFAULT = pa.table(
    {
        "count": [1, 1, 1, 2, 2, 2, 2, 2],
        "noise": [-1, 0, 1, -2, -1, 0, 1, 2],
        "probability": [0.25, 0.5, 0.25, 0.1, 0.2, 0.4, 0.2, 0.1],
    }
)


@dataclass(frozen=True)
class NoiseTable:
    """A p-table: the probability of each noise, by count.

    noises: for each count from 1 its noises, ascending. shares: for each the sums of their probabilities up to each.
    The last count is for all higher counts too. A count of 0 has no noise.
    """

    noises: Sequence[npt.NDArray[np.int64]]
    shares: Sequence[npt.NDArray[np.float64]]

    @classmethod
    def from_any(cls, given: Any = None) -> NoiseTable:
        """Return a p-table from a table or the path of a file; None for the default.

        given: a table with the columns count (1, 2, ... without gaps), noise and probability.

        Raises InputError for other columns or numbers, probabilities that do not sum to 1 and noise below -count, and
        TableReadError.
        """
        frame = open_table(DEFAULT if given is None else given, lambda names: None)
        check_exist("p_table", COLUMNS, frame.names, "the p-table")
        try:
            table = frame.arrow()
        except OutputError:
            raise InputError("p_table: expected numbers, each column of a single type; got other values.") from None
        rows = np.column_stack([numbers_of(table.column(name).combine_chunks()) for name in COLUMNS])
        counts, noise, probability = rows.T
        whole = (counts == np.floor(counts)) & (noise == np.floor(noise)) & (np.abs(noise) < 2**31)
        right = whole & (probability >= 0) & (probability <= 1) & (noise >= -counts)
        if not right.all():
            came = ", ".join(f"{name} {number:g}" for name, number in zip(COLUMNS, rows[~right][0], strict=True))
            raise InputError(
                "p_table: expected whole counts, whole noise of -count or more, and probabilities from 0 to 1; got "
                f"{came}."
            )
        there = np.unique(counts)
        if not np.array_equal(there, np.arange(1, len(there) + 1)):
            raise InputError(
                f"p_table: expected the counts 1, 2, 3, ... without gaps, got {', '.join(f'{own:g}' for own in there)}."
            )
        noises, shares = [], []
        for count in there:
            own = np.flatnonzero(counts == count)
            own = own[np.argsort(noise[own], kind="stable")]
            total = probability[own].sum()
            if abs(total - 1) > ROUNDING:
                raise InputError(f"p_table: expected probabilities of count {count:g} that sum to 1, got {total:.6g}.")
            noises.append(noise[own].astype(np.int64))
            shares.append(np.cumsum(probability[own]))
        return cls(noises, shares)

    @property
    def most(self) -> int:
        """The largest noise, up or down."""
        return max(int(np.abs(own).max()) for own in self.noises)

    def perturb(self, counts: npt.NDArray[np.int64], keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Return counts with noise. keys: the key of each cell; equal keys and counts get equal noise."""
        result = counts.copy()
        places = np.minimum(counts, len(self.noises)) - 1
        for place, (noises, shares) in enumerate(zip(self.noises, self.shares, strict=True)):
            own = places == place
            # The upper 53 bits of a key are a float below 1. Sums of probabilities may end just below 1.
            chosen = np.searchsorted(shares, (keys[own] >> np.uint64(11)) / 2.0**53, "right").clip(max=len(noises) - 1)
            result[own] += noises[chosen]
        return result
