"""Cost and benefit of attacks: the gain of a rational adversary, and the loss of a publisher.

The publisher moves first and publishes each row or keeps it back. The adversary then attacks each published row whose
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
    """The expected payoffs of a publisher and of an adversary for one table; see `Game`.

    Amounts are in the unit of the game, and sums over all rows concerned. An attack that brings neither gain nor loss
    does not happen.

    game: Game. The amounts at stake.
    rows: int. Rows of the table.
    attacked: int. Rows that are attacked: an attack is expected to bring a gain.
    deterred: int. Rows on which an attack is expected to bring a loss.
    publishable: int. Rows whose publication is expected to bring the publisher more than 0, attacks included.
    deterring_size: int or None, rows (people with a population). The least class size that deters. None: no size does.
    publishable_size: int or None, rows (people with a population). The least publishable class size. None: no size is.
    publisher_payout: float. The publisher's payout if all rows are published.
    best_payout: float. The publisher's payout if only publishable rows are published.
    deterring_payout: float. The publisher's payout if only deterred rows are published.
    adversary_payoff: float. The adversary's payoff from all attacks if all rows are published.
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
    """The amounts at stake in the publication of a table, for ``game=`` of `gpupif.risk`; all in one unit.

    An attack on a row finds its person with probability p. For a prosecutor p is 1 / f, f being the rows of its class.
    For a journalist p is 1 / F, F being the people of its class in the population. A rational adversary attacks if a
    gain is expected: adversary_gain * p > adversary_cost. A published row brings the publisher publisher_benefit, less
    publisher_loss * p if it is attacked. A row that is kept back brings 0.

    Parameters
    ----------
    publisher_benefit:
        The publisher's benefit from each published row. Default 1200.
    publisher_loss:
        The publisher's loss for each person who is re-identified. Default 300.
    adversary_gain:
        The adversary's gain from each person who is re-identified. Default 300.
    adversary_cost:
        The adversary's cost of each attempt on one row. Default 4.

    Raises
    ------
    InputError
        An amount that is no number, below 0, or above 2^62.

    References
    ----------
    Wan, Vorobeychik, Xia, Clayton, Kantarcioglu, Ganta, Heatherly & Malin 2015, A Game Theoretic Framework for
    Analyzing Re-Identification Risk. The default amounts are the defaults of ARX, in dollars. ARX's profitability
    models keep the deterred rows (without attacks) and the publishable rows (with attacks).

    Notes
    -----
    Attacked, deterred and publishable rows are decided exactly. Amounts are decimal numbers as they are written: 0.3 is
    three times 0.1.

    Examples
    --------
    An attempt costs 4 and a person found brings 300. An attack on a class of 74 rows brings a gain, of 75 rows neither
    gain nor loss, of 76 rows a loss:

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
        """Return the payoffs for a table, with a prosecutor, from the sizes of its equivalence classes alone.

        class_sizes: as in `gpupif.models.class_risks`.
        rows: as in `gpupif.models.class_risks`.

        `gpupif.risk` with ``population=`` also has the game with a journalist. Raises InputError.
        """
        return self.payoffs_of(ClassSizes.from_classes(histogram_of(class_sizes, rows)).rows_of_size)

    def payoffs_of(self, rows_of_size: Mapping[int, int]) -> Payoffs:
        """Return the payoffs. rows_of_size: number of rows by class size, in the table or in the population."""
        moves = self._moves(np.array(list(rows_of_size), np.float64), np.float64(1))
        rows = np.array(list(rows_of_size.values()), object)
        benefit, loss, gain, cost = (_exact(getattr(self, field.name)) for field in fields(self))
        # Fractions for all rows of a size: whole classes then give amounts of no more digits than the game's.
        lost = [count * loss / size for size, count in rows_of_size.items()]
        gained = [float(count * gain / size - count * cost) for size, count in rows_of_size.items()]
        payouts = [
            float(count * benefit - (lost[place] if moves.attacked[place] else 0)) for place, count in enumerate(rows)
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
        """Return the payoffs for each row of a table.

        Parameters
        ----------
        sizes:
            For each row the size of its class: a list, array or Series of numbers. A size in the table is
            ``class_size`` of `gpupif.score`. A size in the population is ``population_size`` of a column that is scored
            and not known, or with weights ``class_size``. A size between 0 and 1 counts as 1. If the size is 0, nobody
            is there, and no attack succeeds.
        information:
            The share of its information that each published row keeps, in [0, 1]: one number, or one for each row. 1
            for a row as it is, less for a generalized row. It multiplies the publisher's benefit. Default 1.

        Returns
        -------
        pandas.DataFrame
            One row for each row: ``attacked``, ``deterred``, ``publishable`` (booleans, as in `Payoffs`);
            ``adversary_payoff`` (the expected payoff of an attack, above or below 0); ``publisher_payout`` (the
            expected payout of publication). The index is the index of `sizes`, if it has one.

        Raises
        ------
        InputError
            Sizes that are no numbers from 0 on; shares outside [0, 1], or not as many as sizes.

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
        """Return the moves of both sides for rows in classes of these sizes. An attack on an infinite class fails."""
        side = _compare(sizes, self._worth_attacking)
        attacked, deterred = side < 0, side > 0
        probability = 1.0 / sizes
        gained = float(self.adversary_gain) * probability - float(self.adversary_cost)
        earned = float(self.publisher_benefit) * information + np.zeros(len(sizes))
        with np.errstate(invalid="ignore"):
            worth = _compare(sizes * information, self._worth_publishing) > 0
        return _Moves(
            attacked=attacked,
            deterred=deterred,
            publishable=(earned > 0) & (worth | ~attacked),
            adversary_payoff=np.where(attacked | deterred, gained, 0.0),
            publisher_payout=earned - np.where(attacked, float(self.publisher_loss) * probability, 0.0),
        )

    @property
    def _worth_attacking(self) -> Fraction | None:
        """The class size below which an attack brings a gain, and above which it brings a loss. None: infinite."""
        return _ratio(self.adversary_gain, self.adversary_cost)

    @property
    def _worth_publishing(self) -> Fraction | None:
        """The class size above which a row is worth publishing even if it is attacked. None: infinite."""
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
    """The moves for each row, or each class size; see `Game.rows`."""

    attacked: npt.NDArray[np.bool_]
    deterred: npt.NDArray[np.bool_]
    publishable: npt.NDArray[np.bool_]
    adversary_payoff: npt.NDArray[np.float64]
    publisher_payout: npt.NDArray[np.float64]


def _exact(amount: float) -> Fraction:
    """Return an amount exactly as the decimal number that it is written as."""
    return Fraction(str(amount))


def _ratio(amount: float, other: float) -> Fraction | None:
    """Return the exact ratio of two amounts: 0 if the first is 0, None if the ratio is above any number of rows."""
    ratio = _exact(amount) / _exact(other) if amount and other else None
    return Fraction(0) if not amount else None if ratio is None or ratio > MOST else ratio


def _compare(sizes: npt.NDArray[np.float64], limit: Fraction | None) -> npt.NDArray[np.float64]:
    """Return -1 for a size below a limit, 1 above it, 0 if equal: exactly, though the limit may be no float."""
    if limit is None:
        return np.where(np.isinf(sizes), 0.0, -1.0)
    nearest = float(limit)
    beyond = (Fraction(nearest) > limit) - (Fraction(nearest) < limit)
    return np.where(sizes == nearest, beyond, np.sign(sizes - nearest))


def _numbers(argument: str, given: Any, expected: str, most: float) -> npt.NDArray[np.float64]:
    """Return one number or an array of numbers from 0 to `most`. Raises InputError for anything else."""
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
