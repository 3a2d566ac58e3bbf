"""Combinations of an option and measures that are not defined. Each has a sentence for the error that refuses it.

Combinations that are not listed are computed; `gpupif/engines/attacker_scoring.py` has the steps of a score, with
sampling weights and missing values that match every value (wildcards).
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import InputError


class RefusedCombination(NamedTuple):
    """An option with which some measures are not defined.

    option: the option, as messages name it.
    measures: the measures, as messages name them.
    why: the reason, as half a sentence.
    instead: advice, as a sentence.
    """

    option: str
    measures: str
    why: str
    instead: str

    def refusal(self, came: str = "") -> InputError:
        """Return the error that refuses the combination.

        came: a fact of the table that is a further reason, as half a sentence. Default: none.
        """
        return InputError(f"{self.option}: not defined for {self.measures}: {self.why}{came}. {self.instead}")


WILDCARD_ENTROPIES = RefusedCombination(
    "missing='wildcard'",
    "entropies, toxic pairs and quasi-identifiers",
    "a row that matches several combinations of values is in all of them, so that their shares add up to more than 1 "
    "and are no distribution",
    "Use missing='category' or 'error', or drop rows with missing values.",
)
WILDCARD_DIS = RefusedCombination(
    "missing='wildcard'",
    "DIS and DIS-SUDA scores",
    "they count rows that are alone and rows in pairs, and of rows that match several no two need be a pair",
    "Leave sampling_fraction= and weights= out, or use missing='ignore' or 'category'.",
)
WILDCARD_GLOBAL_RISK = RefusedCombination(
    "missing='wildcard'",
    "global risk by a log-linear model",
    "a row that matches several combinations of values is in several cells of the table that is modelled",
    "Use missing='category' or 'error', or drop rows with missing values.",
)
WEIGHTS_WITHOUT_SAMPLE = RefusedCombination(
    "weights",
    "special uniques, where one is below 1",
    "it is the reciprocal of the probability to be in the sample, and a row that stands for nobody is in no sample",
    "Drop such rows, or correct their weights.",
)
WEIGHTS_AND_FRACTION = RefusedCombination(
    "weights",
    "DIS and DIS-SUDA scores beside sampling_fraction=",
    "each of the two says by itself what share of the population is in the sample",
    "Give one of them.",
)
WEIGHTS_RATIOS = RefusedCombination(
    "weights",
    "distinction and separation",
    "they say how well columns tell the rows of a table apart, and which other people a row that stands for many is to "
    "be told apart from is not known",
    "Leave weights= out.",
)
REFUSED_COMBINATIONS = (
    WILDCARD_ENTROPIES,
    WILDCARD_DIS,
    WILDCARD_GLOBAL_RISK,
    WEIGHTS_WITHOUT_SAMPLE,
    WEIGHTS_AND_FRACTION,
    WEIGHTS_RATIOS,
)
