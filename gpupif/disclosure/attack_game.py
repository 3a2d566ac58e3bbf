"""Cost and benefit of attacks: what a rational adversary gains by them, and what a publisher loses.

The publisher moves first and publishes rows or keeps them back; the adversary then attacks those rows whose
re-identification is expected to bring more than the attempt costs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..utils.display import Record
from ..utils.validation import MOST, brief, within
from .class_sizes import ClassSizes, histogram_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Payoffs(Record):
    """What publishing a table as it is brings its publisher, and attacks on it an adversary; see `Game`.

    rows: of the table. attacked: rows on which an attack is expected to bring a gain, so that it happens; deterred:
    rows on which it is expected to bring a loss (of others it brings neither, and does not happen). publishable: rows
    whose publication is expected to bring the publisher more than nothing, attack or not. deterring_size,
    publishable_size: how many rows, with a population people, a class has at least to be so; None: however many, it is
    not. Amounts of all rows together, in the unit of the game: publisher_payout: where all are published;
    best_payout: where only publishable ones are; deterring_payout: where only those are that no attack pays on;
    adversary_payoff: of the attacks that happen where all are published.
    """

    game: Game
    rows: int
    attacked: int
    deterred: int
    publishable: int
    deterring_size: int | None
    publishable_size: int | None
    publisher_payout: float
    best_payout: float
    deterring_payout: float
    adversary_payoff: float


@dataclass(frozen=True)
class Game(Record):
    """What is at stake in the publication of a table, for ``game=`` of `gpupif.risk`: amounts of any one unit.

    Whoever attacks a row finds the person behind it with probability p: 1 / f, f being the rows of its class
    (prosecutor), or 1 / F, F being the people of its class in the population (journalist). A rational adversary attacks
    where that is expected to bring a gain, adversary_gain * p > adversary_cost. A published row then brings the
    publisher publisher_benefit, less publisher_loss * p where it is attacked; one that is kept back brings nothing.

    Parameters
    ----------
    publisher_benefit:
        What the publisher has of each row that is published.
    publisher_loss:
        What the publisher loses by each person who is re-identified.
    adversary_gain:
        What the adversary has of each person who is re-identified.
    adversary_cost:
        What the adversary pays for each attempt, on one row.

    Raises
    ------
    InputError
        An amount that is no number, below 0, or above 2^62.

    References
    ----------
    Wan, Vorobeychik, Xia, Clayton, Kantarcioglu, Ganta, Heatherly & Malin 2015, A Game Theoretic Framework for
    Analyzing Re-Identification Risk. The amounts that hold where none is given are those of ARX, in dollars; deterred
    and publishable rows are what its profitability models keep, without and with attacks.

    Notes
    -----
    Which rows are attacked, deterred and publishable is decided exactly, amounts being taken as the decimal numbers
    that they are written as: 0.3 is three times 0.1.

    Examples
    --------
    An attempt costs 4 and brings 300, so that an attack on a class of 74 rows pays, of 75 neither pays nor does not,
    and of 76 does not:

    >>> game = Game(publisher_benefit=10, publisher_loss=300, adversary_gain=300, adversary_cost=4)
    >>> found = game.payoffs([20, 74, 75, 76])
    >>> found.attacked, found.deterred, found.deterring_size, found.publishable, found.publishable_size
    (94, 76, 76, 225, 31)
    >>> found.publisher_payout, found.best_payout, found.adversary_payoff
    (1850.0, 1950.0, 224.0)

    """

    publisher_benefit: float = 1200
    publisher_loss: float = 300
    adversary_gain: float = 300
    adversary_cost: float = 4

    def __post_init__(self) -> None:
        for field in fields(self):
            amount = getattr(self, field.name)
            if not within(amount, 0, MOST):
                raise InputError(f"{field.name}: expected an amount, a number from 0 to 2^62; got {brief(amount)}.")

    def payoffs(self, class_sizes: Any, rows: int | None = None) -> Payoffs:
        """Return the payoffs for a table, from the sizes of its equivalence classes alone.

        class_sizes, rows: as of `gpupif.models.class_risks`. That is the game with a prosecutor; with a journalist
        `payoffs_of` takes sizes in the population, which `gpupif.risk` finds with ``population=``. Raises InputError.
        """
        return self.payoffs_of(ClassSizes.from_classes(histogram_of(class_sizes, rows)).rows_of_size)

    def payoffs_of(self, rows_of_size: Mapping[int, int]) -> Payoffs:
        """`payoffs`, from the number of rows in classes of each size, of the table or of the population."""
        moves = self._moves(np.array(list(rows_of_size), np.float64), np.float64(1))
        rows = np.array(list(rows_of_size.values()), object)
        benefit, loss, gain, cost = (_exact(getattr(self, field.name)) for field in fields(self))
        # Of all rows of a size exactly: of whole classes these are amounts of no more digits than those of the game.
        lost = [found * loss / size for size, found in rows_of_size.items()]
        gained = [float(found * gain / size - found * cost) for size, found in rows_of_size.items()]
        payouts = [
            float(found * benefit - (lost[place] if moves.attacked[place] else 0)) for place, found in enumerate(rows)
        ]
        return Payoffs(
            game=self,
            rows=sum(rows),
            attacked=sum(rows[moves.attacked]),
            deterred=sum(rows[moves.deterred]),
            publishable=sum(rows[moves.publishable]),
            deterring_size=self._deterring_size,
            publishable_size=self._publishable_size,
            publisher_payout=math.fsum(payouts),
            best_payout=math.fsum(compress(payouts, moves.publishable)),
            deterring_payout=math.fsum(compress(payouts, moves.deterred)),
            adversary_payoff=math.fsum(compress(gained, moves.attacked)),
        )

    def rows(self, sizes: Any, information: Any = 1.0) -> pd.DataFrame:
        """What the game comes to for each row of a table.

        Parameters
        ----------
        sizes:
            For each row the size of its class, a list, array or Series: in the table (``class_size`` of
            `gpupif.score`), or in the population (``population_size`` of a column that is scored but not known; with
            weights ``class_size``). One below 1 counts as 1, and of nobody, 0, no attack succeeds.
        information:
            Which share of its information each row keeps when it is published, one for all or one each, in [0, 1]: 1
            as it is, less where it was generalized. The publisher's benefit is multiplied by it.

        Returns
        -------
        pandas.DataFrame
            One row a row: ``attacked``, ``deterred``, ``publishable`` (booleans, as in `Payoffs`), ``adversary_payoff``
            (what an attack is expected to bring, above 0 or below) and ``publisher_payout`` (what publication is). With
            the index of sizes, where that has one.

        Raises
        ------
        InputError
            Sizes that are no numbers from 0 on; shares that are not in [0, 1], or not as many as sizes.

        Examples
        --------
        >>> Game(publisher_benefit=10).rows([20, 80])
           attacked  deterred  publishable  adversary_payoff  publisher_payout
        0      True     False        False             11.00              -5.0
        1     False      True         True             -0.25              10.0

        """
        import pandas as pd

        people = _numbers("sizes", sizes, "numbers from 0 on", math.inf)
        kept = _numbers("information", information, "shares, numbers from 0 to 1", 1.0)
        if people.ndim != 1 or kept.shape not in ((), people.shape):
            raise InputError(
                f"{'information' if people.ndim == 1 else 'sizes'}: expected one number for each row, got shape "
                f"{(kept if people.ndim == 1 else people).shape}."
            )
        people = np.where(people == 0, np.inf, np.maximum(people, 1.0))
        index = sizes.index if hasattr(sizes, "iloc") else None
        return pd.DataFrame(self._moves(people, kept)._asdict(), index=index)

    def _moves(self, sizes: npt.NDArray[np.float64], information: npt.NDArray[np.float64] | np.float64) -> _Moves:
        """Return the moves of both sides for rows in classes of these sizes; in infinite classes no attack succeeds."""
        side = _compare(sizes, self._worth_attacking)
        attacked, deterred = side < 0, side > 0
        found = 1.0 / sizes
        gained = float(self.adversary_gain) * found - float(self.adversary_cost)
        earned = float(self.publisher_benefit) * information + np.zeros(len(sizes))
        with np.errstate(invalid="ignore"):
            worth = _compare(sizes * information, self._worth_publishing) > 0
        return _Moves(
            attacked=attacked,
            deterred=deterred,
            publishable=(earned > 0) & (worth | ~attacked),
            adversary_payoff=np.where(attacked | deterred, gained, 0.0),
            publisher_payout=earned - np.where(attacked, float(self.publisher_loss) * found, 0.0),
        )

    @property
    def _worth_attacking(self) -> Fraction | None:
        """Classes below this size are attacked, those above it are not worth it; None: it is infinite."""
        return _ratio(self.adversary_gain, self.adversary_cost)

    @property
    def _worth_publishing(self) -> Fraction | None:
        """Classes above this size are worth publishing even if they are attacked; None: it is infinite."""
        return _ratio(self.publisher_loss, self.publisher_benefit)

    @property
    def _deterring_size(self) -> int | None:
        limit = self._worth_attacking
        return None if limit is None else math.floor(limit) + 1

    @property
    def _publishable_size(self) -> int | None:
        if not self.publisher_benefit:
            return None
        attacked, worth = self._worth_attacking, self._worth_publishing
        sizes = [] if worth is None else [math.floor(worth) + 1]
        sizes += [] if attacked is None else [max(1, math.ceil(attacked))]
        return min(sizes, default=None)


class _Moves(NamedTuple):
    """The moves for each row, or class; see `Game.rows`."""

    attacked: npt.NDArray[np.bool_]
    deterred: npt.NDArray[np.bool_]
    publishable: npt.NDArray[np.bool_]
    adversary_payoff: npt.NDArray[np.float64]
    publisher_payout: npt.NDArray[np.float64]


def _exact(amount: float) -> Fraction:
    """An amount as the decimal number that it is written as."""
    return Fraction(str(amount))


def _ratio(amount: float, other: float) -> Fraction | None:
    """Return the exact ratio of two amounts: 0 if the first is 0, None if the ratio is above any number of rows."""
    ratio = _exact(amount) / _exact(other) if amount and other else None
    return Fraction(0) if not amount else None if ratio is None or ratio > MOST else ratio


def _compare(sizes: npt.NDArray[np.float64], limit: Fraction | None) -> npt.NDArray[np.float64]:
    """Below 0 where a size is below a limit, above 0 where it is above it, 0 where it is equal, exactly."""
    if limit is None:
        return np.where(np.isinf(sizes), 0.0, -1.0)
    nearest = float(limit)
    beyond = (Fraction(nearest) > limit) - (Fraction(nearest) < limit)
    return np.where(sizes == nearest, beyond, np.sign(sizes - nearest))


def _numbers(argument: str, given: Any, expected: str, most: float) -> npt.NDArray[np.float64]:
    """Numbers from 0 to `most`, one or several; raises InputError for anything else."""
    try:
        array = np.asarray(given)
        numbers = array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{argument}: expected {expected}; got {brief(given)}.") from None
    wrong = ~((numbers >= 0) & (numbers <= most) & (numbers < math.inf)) | (array.dtype.kind not in "iufO")
    if wrong.any():
        place = int(np.argmax(wrong))
        came = brief(array.reshape(-1).tolist()[place])
        raise InputError(f"{argument}: expected {expected}; got {came} at position {place}.")
    return numbers
