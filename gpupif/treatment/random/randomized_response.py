"""Randomised response: values that are kept, or else drawn anew."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar

from ...errors import InputError
from ...utils.validation import brief, check_word, is_number, within
from ..steps import Step
from ..treatment import Tools, TreatedTable, Treatment
from .transitions import ALL, CATEGORY, KEEP, KeepOrReplace, TransitionStep, check_missing_rule, domain_of


def keep_of_epsilon(epsilon: float, least: Fraction) -> Fraction:
    """The probability t to keep a value that has this epsilon; the same on every machine."""
    if math.isinf(epsilon):
        return Fraction(1)
    # Kept to more digits than thresholds have, also where e^epsilon is near 1 or large.
    with localcontext(prec=80 + int(epsilon)):
        gain = Fraction(Decimal(epsilon).exp()) - 1
    return gain * least / (gain * least + 1)


UNIFORM, PRIOR = "uniform", "prior"
# Beyond it a replacement would be rarer than once in 2^64.
MOST_EPSILON = 40.0


@dataclass(frozen=True)
class RandomizedResponse(Treatment):
    """Keep each value with a probability, else draw another one: what a row says can be denied (Warner, 1965).

    keep: the probability t, from 0 to 1. epsilon: in its place, that of local differential privacy in nats, 0 or more:
    P(y given x) is at most e^epsilon times P(y given any other x). replaced: replacements are drawn "uniform" from all
    k values, so that P(y given x) = t[x = y] + (1 - t)/k and epsilon = ln(1 + kt/(1 - t)), or by the "prior", the
    shares that values have in the table, which keeps these in expectation. values: those that there may be; without
    it, those of the table, which are then shown to be there. missing: "category" (one value more) or "keep" (missing
    values stay missing, which shows them); required where there are any.

    Probabilities are whole numbers out of 2^64, rounded towards more privacy. `estimates` of what `gpupif.treat`
    returns has unbiased shares of the values before.
    """

    do: ClassVar[str] = "randomized_response"
    value_lists: ClassVar[Sequence[str]] = ("values",)
    is_random: ClassVar[bool] = True

    column: Hashable
    keep: float | None = None
    epsilon: float | None = None
    replaced: str = UNIFORM
    values: Sequence[Any] | None = None
    missing: str | None = None

    def check(self) -> None:
        said = f"{self.do} of column {self.column!r}"
        if (self.keep is None) == (self.epsilon is None):
            came = "neither" if self.keep is None else "both"
            raise InputError(f"{said}: expected either keep= (a probability) or epsilon= (in nats), got {came}.")
        if self.keep is not None and not within(self.keep, 0, 1):
            hint = " Divide percentages by 100." if within(self.keep, 1, 100) else ""
            raise InputError(f"{said}: keep: expected a probability from 0 to 1, got {brief(self.keep)}.{hint}")
        if self.epsilon is not None and not (is_number(self.epsilon) and 0 <= self.epsilon <= MOST_EPSILON):
            raise InputError(
                f"{said}: epsilon: expected a number from 0 to {MOST_EPSILON:g} (nats), got {brief(self.epsilon)}. "
                "For values that all stay, write keep=1."
            )
        check_word(f"{said}: replaced", self.replaced, (UNIFORM, PRIOR))
        check_missing_rule(said, self.missing, (CATEGORY, KEEP))
        if isinstance(self.values, str):
            raise InputError(f"{said}: values: expected a list of values, got {brief(self.values)}.")
        if self.values is not None and not len(self.values):
            raise InputError(f"{said}: values: expected at least one value, got an empty list.")

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        found = table.values(self.column)
        draws = tools.draws(self.do, self.column)
        domain = domain_of(self.column, found, self.values, self.missing)
        size = domain.randomised
        shares = [Fraction(1, size) for _ in range(size)]
        if self.replaced == PRIOR:
            counts = dict(zip(found.labels.to_pylist(), found.counts.tolist(), strict=True))
            numbers = [*(counts.get(label, 0) for label in domain.labels.to_pylist()), found.missing][:size]
            shares = [Fraction(number, sum(numbers)) for number in numbers] if sum(numbers) else shares
        # What the table does not have is no value that a row may have had, unless it was given.
        least = min((part for part in shares if part or self.values is not None), default=Fraction(1))
        if self.epsilon is not None and not least:
            raise InputError(
                f"{self.do} of column {self.column!r}: epsilon= needs every value to be drawn at times, and with "
                "replaced='prior' those that are not in the table never are. Leave out values=, or draw 'uniform'."
            )
        keep = Fraction(self.keep) if self.keep is not None else keep_of_epsilon(self.epsilon or 0.0, least)
        replacement = KeepOrReplace(_amounts(keep, shares), domain.states)
        drawn = [float(Fraction(amount, ALL)) for amount in replacement.replaced]
        rarest = min((amount for amount in replacement.replaced if amount or self.values is not None), default=0)
        epsilon = math.log1p(Fraction(replacement.kept, rarest)) if rarest else math.inf
        facts = {
            "values": size,
            "values_from": "the table" if self.values is None else "the plan",
            "keep": float(replacement.keep),
            # As JSON has no infinity.
            "epsilon": epsilon if math.isfinite(epsilon) else None,
            "replaced_by_each": drawn if self.replaced == PRIOR else drawn[0] if drawn else 0.0,
        }
        # By the shares of values these are facts of the table; by epsilon what is kept tells the rarest.
        hidden = ("keep", "epsilon", "replaced_by_each") if self.replaced == PRIOR else ()
        return TransitionStep(self.column, draws, domain, replacement, facts, hidden)


def _amounts(keep: Fraction, shares: Sequence[Fraction]) -> list[int]:
    """How often each replacement is drawn, out of 2^64: rounded up, so that epsilon is not above that asked for, but
    where they then were more than all.
    """
    exact = [(1 - keep) * share * ALL for share in shares]
    above = [math.ceil(amount) for amount in exact]
    return above if sum(above) <= ALL else [math.floor(amount) for amount in exact]
