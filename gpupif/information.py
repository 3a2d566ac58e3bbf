"""Entropies of counts, in bits; sums run over sorted counts, so they do not depend on the order of rows or values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Of a float64; and of its half.
MANTISSA_BITS, HALF_BITS = 53, 26
# More than c log2 c has, for any number c of 64 bits.
EXPONENTS = 128


def log2_counts(counts: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """log2 of each count, by the function that the kernels use."""
    import numpy as np

    from gpupif.kernels.sizes import log2_of

    logs = np.empty(len(counts))
    log2_of(counts, logs)
    return logs


def sum_count_log_count(counts: npt.ArrayLike, times: npt.ArrayLike | None = None) -> float:
    """Sum of c log2 c over counts c > 0, each taken `times` times (default once)."""
    import numpy as np

    values, repeats = np.asarray(counts), np.ones(np.size(counts), np.int64) if times is None else np.asarray(times)
    order = np.argsort(values, kind="stable")
    values, repeats = values[order], repeats[order]
    keep = (values > 1) & (repeats > 0)
    values = values[keep].astype(np.float64)
    return float(np.sum(repeats[keep] * values * np.log2(values)))


class Sizes(NamedTuple):
    """How many groups of rows there are of each size, ascending; those of one row, which weigh nothing, left out."""

    sizes: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]

    @classmethod
    def of(cls, sizes: npt.NDArray[np.integer], times: npt.NDArray[np.integer] | None = None) -> Sizes:
        """Groups of these sizes, which may repeat, each taken `times` times (default once)."""
        import numpy as np

        if times is None:
            different, found = np.unique(sizes[sizes > 1], return_counts=True)
            return cls(different.astype(np.int64), found)
        keep = (sizes > 1) & (times > 0)
        different, place = np.unique(sizes[keep], return_inverse=True)
        found = np.zeros(len(different), np.int64)
        np.add.at(found, place, times[keep])
        return cls(different.astype(np.int64), found)

    @classmethod
    def total(cls, parts: Iterable[Sizes]) -> Sizes:
        """Groups of several parts of a table together."""
        import numpy as np

        nothing = np.empty(0, np.int64)
        several = [cls(nothing, nothing), *parts]
        return cls.of(
            np.concatenate([part.sizes for part in several]), np.concatenate([part.times for part in several])
        )

    def log_sum(self) -> LogSum:
        """The sum of c log2 c over the groups' sizes c, exactly."""
        import numpy as np

        values = self.sizes.astype(np.float64)
        fractions, exponents = np.frexp(values * np.log2(values))
        digits = np.ldexp(fractions, MANTISSA_BITS).astype(np.int64)
        sums = np.zeros((2, EXPONENTS), np.int64)
        # In halves, so that as many groups as there may be rows do not overflow.
        for half, part in zip(sums, (digits >> HALF_BITS, digits & ((1 << HALF_BITS) - 1)), strict=True):
            np.add.at(half, exponents, part * self.times)
        high, low = sums.tolist()
        return LogSum({place: (high[place] << HALF_BITS) + low[place] for place in np.unique(exponents).tolist()})

    def sum_log(self) -> float:
        """Sum of c log2 c over the groups' sizes c, rounded once."""
        return self.log_sum().sum_log()


class LogSum(NamedTuple):
    """The sum of c log2 c over groups of c rows each, the terms rounded, but not the sum.

    So it is the same whatever the order and the parts that groups come in, and small, however many sizes there are.

    digits: by exponent e the sum of m of all terms m 2^(e - 53).
    """

    digits: dict[int, int]

    @classmethod
    def total(cls, parts: Iterable[Sizes | LogSum]) -> LogSum:
        """Groups of several parts of a table together."""
        digits: dict[int, int] = {}
        for part in parts:
            for exponent, more in part.log_sum().digits.items():
                digits[exponent] = digits.get(exponent, 0) + more
        return cls(digits)

    def log_sum(self) -> LogSum:
        """Itself; see `Sizes`."""
        return self

    def sum_log(self) -> float:
        """The sum, rounded."""
        # Terms are at least 2 log2 2, so that no exponent is below 0.
        return sum(digits << exponent for exponent, digits in self.digits.items()) / (1 << MANTISSA_BITS)


def entropy_of_counts(counts: npt.NDArray[np.integer]) -> float:
    """Entropy of the distribution that these counts have, in bits; 0 for a single value, and for nothing."""
    import math

    total = int(counts.sum())
    return max(0.0, math.log2(total) - sum_count_log_count(counts) / total) if total else 0.0


def column_weight(conditional: float, rows: int, entropy: float) -> float:
    """Weight of a column, H(X|known) / H(X), in [0, 1] whatever rounding does; 0 where H(X) is 0.

    conditional: H(X|known) times the rows: the sum of C log2 C over cohorts less that of c log2 c over distinct rows.
    """
    return min(1.0, max(0.0, conditional / rows) / entropy) if entropy > 0 else 0.0


def entropy_of_probabilities(probabilities: npt.NDArray[np.float64]) -> float:
    """Entropy of a distribution, in bits; zero probabilities add nothing."""
    import numpy as np

    positive = np.sort(probabilities[probabilities > 0])
    return max(0.0, float(-np.sum(positive * np.log2(positive))))
