"""Randomised response: each value is kept with a probability, else replaced by a random value."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from ...errors import InputError
from ...utils.validation import brief, within
from ..field_checks import probability
from ..steps import Step
from ..treatment import Tools, TreatedTable, Treatment
from ..value_maps.new_values import checked_texts
from .response_formulas import epsilon_of_keep, keep_of_epsilon
from .transitions import ALL, KeepOrReplace, TransitionStep, domain_of

PRIOR = "prior"
# For a larger epsilon, the probability of a replacement could round to 0 out of 2^64.
MOST_EPSILON = 40.0


@dataclass(frozen=True)
class RandomizedResponse(Treatment):
    """Keep each value with a probability, else draw a random value: every person can deny their value (Warner, 1965).

    column: name of the column.
    keep: the probability t to keep a value, from 0 to 1. Give either `keep` or `epsilon`.
    epsilon: the parameter of local differential privacy in nats, from 0 to 40. P(y given x) is at most e^epsilon times
        P(y given x') for all values x, x' and y.
    replaced: "uniform" draws from all k values: P(y given x) = t[x = y] + (1 - t)/k and epsilon = ln(1 + kt/(1 - t)).
        "prior" draws by the shares of values in the table, and keeps these shares in expectation. Default "uniform".
    values: list of all possible values. Default None: the values of the table, which thereby become known.
    missing: the rule for missing values, required if there are any: "category" treats them as a further value, "keep"
        leaves them missing, and so shows them. Default None.

    Probabilities are whole numbers out of 2^64, rounded towards more privacy. `estimates` of the result of
    `gpupif.treat` gives unbiased shares of the original values.

    Raises InputError for missing values without a rule, and for a value of the table that is not in `values`. Also
    raises InputError for an epsilon if a value of `values` is never drawn, as the table does not have it.
    """

    do: ClassVar[str] = "randomized_response"
    value_lists: ClassVar[Sequence[str]] = ("values",)
    is_random: ClassVar[bool] = True

    column: Hashable
    keep: Annotated[float | None, probability] = None
    epsilon: float | None = None
    replaced: Literal["uniform", "prior"] = "uniform"
    values: Sequence[Any] | None = None
    missing: Literal["category", "keep"] | None = None

    def check(self) -> None:
        super().check()
        if (self.keep is None) == (self.epsilon is None):
            came = "neither" if self.keep is None else "both"
            raise InputError(f"{self.said}: expected either keep= (a probability) or epsilon= (in nats), got {came}.")
        if self.epsilon is not None and not within(self.epsilon, 0, MOST_EPSILON):
            raise InputError(
                f"{self.said}: epsilon: expected a number from 0 to {MOST_EPSILON:g} (nats), got "
                f"{brief(self.epsilon)}. For values that all stay, write keep=1."
            )
        if self.values is not None and not len(self.values):
            raise InputError(f"{self.said}: values: expected at least one value, got an empty list.")
        checked_texts(f"{self.said}: values", self.values or ())

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        observed = table.values(self.column)
        draws = tools.draws(self.do, self.column)
        domain = domain_of(self.column, observed, self.values, self.missing)
        size = domain.randomised
        shares = [Fraction(1, size) for _ in range(size)]
        if self.replaced == PRIOR:
            counts = dict(zip(observed.labels.to_pylist(), observed.counts.tolist(), strict=True))
            numbers = [*(counts.get(label, 0) for label in domain.labels.to_pylist()), observed.missing][:size]
            shares = [Fraction(number, sum(numbers)) for number in numbers] if sum(numbers) else shares
        # Without `values=`, a row can only have had a value of the table: shares of 0 do not limit epsilon.
        least = min((part for part in shares if part or self.values is not None), default=Fraction(1))
        if self.epsilon is not None and not least:
            raise InputError(
                f"{self.said}: epsilon= needs every value to be drawn sometimes, but "
                "replaced='prior' never draws a value that the table lacks. Leave out values=, or draw 'uniform'."
            )
        keep = Fraction(self.keep) if self.keep is not None else keep_of_epsilon(self.epsilon or 0.0, least)
        replacement = KeepOrReplace(_amounts(keep, shares), domain.states)
        drawn = [float(Fraction(amount, ALL)) for amount in replacement.replaced]
        rarest = min((amount for amount in replacement.replaced if amount or self.values is not None), default=0)
        epsilon = epsilon_of_keep(replacement.keep, Fraction(rarest, ALL))
        facts = {
            "values": size,
            "values_from": "the table" if self.values is None else "the plan",
            "keep": float(replacement.keep),
            # JSON has no infinity.
            "epsilon": epsilon if math.isfinite(epsilon) else None,
            "replaced_by_each": drawn if self.replaced == PRIOR else drawn[0] if drawn else 0.0,
        }
        # With "prior", these facts follow from the shares of values in the table: a public record must not show them.
        hidden = ("keep", "epsilon", "replaced_by_each") if self.replaced == PRIOR else ()
        return TransitionStep(draws, domain, replacement, writes=[self.column], record=facts, revealing=hidden)


def _amounts(keep: Fraction, shares: Sequence[Fraction]) -> list[int]:
    """Return the probability of each replacement, out of 2^64.

    Probabilities are rounded up, which keeps epsilon at or below the request. They are rounded down if they would
    add up to more than 2^64.
    """
    exact = [(1 - keep) * share * ALL for share in shares]
    above = [math.ceil(amount) for amount in exact]
    return above if sum(above) <= ALL else [math.floor(amount) for amount in exact]
