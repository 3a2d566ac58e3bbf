"""The registry of measures of a cell or its row. A new measure is an entry here and its formula in `gpupif.kernels`.

Formulas of a cell's own value and of sizes are in `kernels/formulas.py`. Formulas of a cohort are in
`kernels/statistics.py`, or in `kernels/walks.py` if they need the cohort's values in the order of the column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import InputError, did_you_mean

if TYPE_CHECKING:
    from gpupif.kernels.cohorts import WantedMeasures


class Statistic(NamedTuple):
    """A statistic of a cohort.

    kind: the name of a constant in `kernels/statistics.py`. order: a parameter of some kinds. Default: 0.
    """

    kind: str
    order: float = 0.0


@dataclass(frozen=True)
class Measure:
    """A measure of a cell or its row.

    name: text. The name in `measures=` and in the names of score columns.
    unit: text. The unit of the scores, such as "bits".
    meaning: text. The meaning in a line.
    range: text. The range of the scores; "and up" means to infinity, which is a possible score.
    source: text. The publication that defines the measure.
    cell: text. The name of the constant in `kernels/formulas.py` for the formula of a cell. Default: "OF_COHORT".
    statistic: Statistic. The statistic of the cohort, if the measure is a statistic. Default: None.
    weighted: bool. Whether the scores are multiplied by the column's weight, after it is known. Default: False.
    low_is_risky: bool. Whether the riskiest cells have the lowest scores. Default: False.
    dtype: text. The type of the scores, if it does not follow the requested type; "int64" for counts. Default: None.
    of_rows_and_people: bool. Whether the measure needs both the rows of an equivalence class and its people, if there
        are sampling weights, see `engines/individual_risk.py`. Otherwise it is the formula of `cell`. Default: False.
    example: float. The score of the first cell a of the table g a, g a, g a, g b, h a, h b, h c, h c, for an attacker
        who knows g. The cohort has the values a, a, a, b; the prior of a, b and c is 1/2, 1/4 and 1/4. Default: None.
    """

    name: str
    unit: str
    meaning: str
    range: str
    source: str
    cell: str = "OF_COHORT"
    statistic: Statistic | None = None
    weighted: bool = False
    low_is_risky: bool = False
    dtype: str | None = None
    of_rows_and_people: bool = False
    example: float | None = None

    @property
    def of_cohort(self) -> bool:
        """True if all cells of a cohort have the same score."""
        return self.statistic is not None or self.cell == "COHORT_SIZE"

    @property
    def is_row_measure(self) -> bool:
        """True if all rows of an equivalence class have the same score, in every column."""
        return self.is_size and self.cell != "COHORT_SIZE"

    @property
    def is_size(self) -> bool:
        """True if the score follows from the number of people in the cohort or the equivalence class."""
        from gpupif.kernels import formulas

        return bool(formulas.is_of_size.py_func(getattr(formulas, self.cell)))

    @property
    def differs_by_processor(self) -> bool:
        """True if the last bits of scores differ on another kind of processor, whose mathematical functions differ."""
        return self.statistic is not None and self.statistic.kind == "RENYI_NEAR_ONE"

    @property
    def walks(self) -> bool:
        """True if the formula needs the cohort's values in the order of the column."""
        return self.statistic is not None and self.statistic.kind == "MOVER"

    def type_in(self, dtype: str) -> str:
        """Return the type of the scores. dtype: the requested type."""
        return self.dtype or dtype


@dataclass(frozen=True)
class Family:
    """Measures that differ in a number, with which their names end: renyi_2, renyi_inf, ...

    prefix: the beginning of the names. expects: the allowed numbers, in words. make: returns the measure by its name
    and number. accepts: returns whether a number is allowed.
    """

    prefix: str
    expects: str
    make: Callable[[str, float], Measure]
    accepts: Callable[[float], bool]

    def member(self, name: str) -> Measure:
        """Return the measure with this name; raises InputError for a number that is not allowed."""
        text = name.removeprefix(self.prefix)
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not self.accepts(number) or set(text) & set(" _") or text.startswith("+"):
            raise InputError(f"measures: expected {self.prefix} with {self.expects} after it, got {name!r}.")
        # Write the number in one way, so that a measure has one name.
        short = f"{number:g}" if float(f"{number:g}") == number else repr(number)
        return self.make(f"{self.prefix}{short}", number)


MANUAL = "piflib manual, section {}"

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(
            "cig",
            "bits",
            "cell information gain: Kullback-Leibler divergence of posterior from prior, sum of p log2(p / q)",
            "0 and up",
            MANUAL.format(1.4),
            statistic=Statistic("DIVERGENCE"),
            example=0.438722,
        ),
        Measure(
            "wcig",
            "bits",
            "CIG times the column's weight H(X|known) / H(X)",
            "0 and up",
            MANUAL.format(1.5),
            statistic=Statistic("DIVERGENCE"),
            weighted=True,
            example=0.338003,
        ),
        Measure(
            "csf",
            "probability",
            "cell surprise factor: |posterior - prior| of the cell's value",
            "0 to 1",
            MANUAL.format(1.6),
            cell="SURPRISE",
            example=0.25,
        ),
        Measure(
            "posterior",
            "probability",
            "probability of the cell's value within its cohort",
            "0 to 1",
            MANUAL.format(1.4),
            cell="POSTERIOR",
            example=0.75,
        ),
        Measure(
            "prior",
            "probability",
            "probability of the cell's value before anything is known",
            "0 to 1",
            MANUAL.format(1.4),
            cell="PRIOR",
            low_is_risky=True,
            example=0.5,
        ),
        Measure(
            "cohort_size",
            "rows",
            "rows, with weights people, that agree on everything the attacker knows",
            "1 and up; with weights 0 and up",
            "Sweeney, k-Anonymity (2002)",
            cell="COHORT_SIZE",
            low_is_risky=True,
            dtype="int64",
            example=4,
        ),
        Measure(
            "class_size",
            "rows",
            "size of the row's equivalence class: rows, with weights people, that agree on all columns the attacker "
            "knows, the scored column included if it is known; the same number in all known columns",
            "1 and up; with weights 0 and up",
            "Sweeney, k-Anonymity (2002)",
            cell="CLASS_SIZE",
            low_is_risky=True,
            dtype="int64",
            example=4,
        ),
        Measure(
            "reidentification_risk",
            "probability",
            "re-identification risk of the row: 1 / class_size (prosecutor risk); with weights 1 / the estimated size "
            "in the population (naive journalist risk), 1 for a size of at most one person, 0 for nobody",
            "0 to 1",
            "El Emam & Dankar, Protecting Privacy Using k-Anonymity (2008)",
            cell="REIDENTIFICATION",
            example=0.25,
        ),
        Measure(
            "individual_risk",
            "probability",
            "individual risk of re-identification of the row: 1 / class_size; with weights the expected value of 1 / F "
            "for the people F of its class in the population, which are negative binomial, given its f rows and the "
            "sum of their weights; 1 / f for a sum of at most f, 0 for nobody",
            "0 to 1",
            "Benedetti & Franconi (1998); Franconi & Polettini, Individual Risk Estimation in mu-Argus (2004)",
            cell="REIDENTIFICATION",
            of_rows_and_people=True,
            example=0.25,
        ),
        Measure(
            "unique",
            "0 or 1",
            "uniqueness of the row: 1 if class_size is 1, else 0; with weights 1 if class_size, estimated for the "
            "population, is above 0 and at most 1",
            "0 or 1",
            "Skinner & Elliot, A Measure of Disclosure Risk for Microdata (2002)",
            cell="UNIQUE",
            example=0,
        ),
        Measure(
            "pointwise_information",
            "bits",
            "pointwise information: log2(posterior / prior) of the cell's value",
            "any number; with weights also -inf",
            "Fano, Transmission of Information (1961), chapter 2",
            cell="POINTWISE",
            example=0.584963,
        ),
        Measure(
            "information_content",
            "bits",
            "information content of the cell's value, -log2 prior",
            "0 and up",
            "Shannon, A Mathematical Theory of Communication (1948)",
            cell="CONTENT",
            example=1.0,
        ),
        Measure(
            "total_variation",
            "probability",
            "total variation distance of posterior and prior: half the sum of |p - q|",
            "0 to 1",
            "Levin & Peres, Markov Chains and Mixing Times (2017), section 4.1",
            statistic=Statistic("TOTAL_VARIATION"),
            example=0.25,
        ),
        Measure(
            "jensen_shannon",
            "bits",
            "Jensen-Shannon divergence of posterior and prior: half the sum of p log2(p / m) + q log2(q / m), m "
            "between them",
            "0 to 1",
            "Lin, Divergence Measures Based on the Shannon Entropy (1991)",
            statistic=Statistic("JENSEN_SHANNON"),
            example=0.143156,
        ),
        Measure(
            "hellinger",
            "distance",
            "Hellinger distance of posterior and prior: square root of half the sum of (sqrt p - sqrt q)^2",
            "0 to 1",
            "Le Cam & Yang, Asymptotics in Statistics (2000), section 3",
            statistic=Statistic("HELLINGER"),
            example=0.370982,
        ),
        Measure(
            "emd",
            "steps",
            "earth mover's distance of posterior and prior: in steps for ordered values, in levels for a hierarchy, 1 "
            "between any other two values",
            "0 and up",
            "Li, Li & Venkatasubramanian, t-Closeness (2007), section 5",
            statistic=Statistic("MOVER"),
            example=0.25,
        ),
        Measure(
            "entropy",
            "bits",
            "entropy of the values in the cohort, independent of the accuracy: -sum of c/C log2(c/C)",
            "0 and up",
            "Machanavajjhala et al., l-Diversity (2007), section 4.1",
            statistic=Statistic("ENTROPY"),
            low_is_risky=True,
            example=0.811278,
        ),
        Measure(
            "distinct_values",
            "values",
            "distinct values in the cohort",
            "1 and up; 0 if the cohort has no value (weights, wildcards)",
            "Machanavajjhala et al., l-Diversity (2007), section 4",
            statistic=Statistic("VALUES"),
            low_is_risky=True,
            dtype="int64",
            example=2,
        ),
        Measure(
            "relative_gain",
            "ratio",
            "(posterior - prior) / prior of the cell's value; its highest is beta of basic beta-likeness",
            "-1 and up",
            "Cao & Karras, Publishing Microdata with a Robust Privacy Guarantee (2012), definition 2",
            cell="RELATIVE_GAIN",
            example=0.5,
        ),
        Measure(
            "enhanced_gain",
            "ratio",
            "relative_gain if it is at most -ln prior, else infinite; its highest is beta of enhanced beta-likeness",
            "-1 and up",
            "Cao & Karras, Publishing Microdata with a Robust Privacy Guarantee (2012), definition 3",
            cell="ENHANCED_GAIN",
            example=0.5,
        ),
        Measure(
            "log_ratio",
            "nats",
            "|ln(posterior / prior)| of the cell's value; its highest is delta of delta-disclosure",
            "0 and up",
            "Brickell & Shmatikov, The Cost of Privacy (2008), section 4",
            cell="LOG_RATIO",
            example=0.405465,
        ),
        Measure(
            "highest_relative_gain",
            "ratio",
            "the highest relative_gain of a value in the cohort: beta of basic beta-likeness of the cohort",
            "0 and up",
            "Cao & Karras, Publishing Microdata with a Robust Privacy Guarantee (2012), definition 2",
            statistic=Statistic("GAIN_MOST"),
            example=0.5,
        ),
        Measure(
            "highest_enhanced_gain",
            "ratio",
            "the highest enhanced_gain of a value in the cohort: beta of enhanced beta-likeness of the cohort",
            "0 and up",
            "Cao & Karras, Publishing Microdata with a Robust Privacy Guarantee (2012), definition 3",
            statistic=Statistic("ENHANCED_GAIN_MOST"),
            example=0.5,
        ),
        Measure(
            "highest_log_ratio",
            "nats",
            "the highest log_ratio of a value in the cohort: delta of delta-disclosure of the cohort",
            "0 and up",
            "Brickell & Shmatikov, The Cost of Privacy (2008), section 4",
            statistic=Statistic("LOG_RATIO_MOST"),
            example=0.405465,
        ),
    )
}

# Orders that differ from 1 by less than this have another formula, which loses no digits.
NEAR_ONE = 1e-2
# Higher orders are computed as this order, which is less than 2^-44 bits lower. Exponents (order times logarithm) then
# fit into 64 bits.
HIGHEST_ORDER = 2.0**50
SPECIAL_ORDERS = {0.0: "RENYI_ZERO", 1.0: "DIVERGENCE", math.inf: "RENYI_MOST"}


def _renyi(name: str, order: float) -> Measure:
    return Measure(
        name,
        "bits",
        f"Rényi divergence of order {name.removeprefix('renyi_')} of posterior from prior, log2(sum of p^r q^(1-r)) / "
        "(r - 1), r being the order",
        "0 and up",
        "Rényi (1961); Mironov, Rényi Differential Privacy (2017), definition 3",
        statistic=Statistic(
            SPECIAL_ORDERS.get(order, "RENYI_NEAR_ONE" if abs(order - 1.0) < NEAR_ONE else "RENYI"),
            min(order, HIGHEST_ORDER),
        ),
        example=0.459432 if order == 2.0 else None,
    )


def _recursive(name: str, least: float) -> Measure:
    return Measure(
        name,
        "ratio",
        f"r_1 / (r_{least:g} + ... + r_m) of the cohort's counts by value, the highest first: recursive (c,"
        f"{least:g})-diversity holds for any greater c",
        "above 0",
        "Machanavajjhala et al., l-Diversity (2007), section 4.2",
        statistic=Statistic("RECURSIVE", least),
        example=3.0 if least == 2.0 else None,
    )


FAMILIES = (
    Family("renyi_", "an order from 0 to inf (renyi_2, renyi_0.5, renyi_inf)", _renyi, lambda order: order >= 0.0),
    Family(
        "recursive_",
        "l, a whole number of at least 1 (recursive_3)",
        _recursive,
        lambda least: 1.0 <= least < 2.0**31 and least.is_integer(),
    ),
)


def _look_up(name: object) -> Measure | None:
    """Return the measure with this name, or None; raises InputError for a family with a number that is not allowed."""
    if not isinstance(name, str):
        return None
    family = next((family for family in FAMILIES if name.startswith(family.prefix)), None)
    return MEASURES.get(name) if family is None else family.member(name)


def is_measure(name: str) -> bool:
    """Return whether there is a measure with this name."""
    try:
        return _look_up(name) is not None
    except InputError:
        return False


def suggest_measure(name: object) -> str:
    """Return a question that suggests the measure with the most similar name, see `did_you_mean`."""
    return did_you_mean(str(name).lower(), MEASURES)


def resolve_measures(names: str | Iterable[str]) -> tuple[Measure, ...]:
    """Return the measures with these names, in their order, each once.

    Raises InputError for an unknown name, or for no name at all.
    """
    wanted = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    measures = [_look_up(name) for name in wanted]
    unknown = [name for name, measure in zip(wanted, measures, strict=True) if measure is None]
    if unknown or not wanted:
        came = ", ".join(repr(name) for name in unknown) or "none"
        families = ", ".join(f"{family.prefix}..." for family in FAMILIES)
        hint = suggest_measure(unknown[0]) if unknown else ""
        raise InputError(
            f"measures: expected some of {', '.join(MEASURES)}, {families}; got {came}.{hint} `gpupif measures` lists "
            "what they mean."
        )
    return tuple(dict.fromkeys(measure for measure in measures if measure is not None))


# The measure that is scored in addition to the requested measures if there is a population.
POPULATION_SIZE = Measure(
    "population_size",
    "rows",
    "rows of the population that agree on everything the attacker knows",
    "1 and up",
    "El Emam, Guide to the De-Identification of Personal Health Information (2013), chapter 16",
    low_is_risky=True,
    dtype="int64",
)


def find_measure(name: str) -> Measure:
    """Return the measure with this name, which is a known name."""
    return POPULATION_SIZE if name == POPULATION_SIZE.name else resolve_measures(name)[0]


def as_risk(measure: Measure, scores: Any) -> Any:
    """Return risks for scores: a higher risk is riskier. Cells whose cohort has nobody get the lowest risk.

    scores: an array on the host or a device.
    """
    if not measure.low_is_risky:
        return scores
    return -_swapped(measure, scores, 0, _last(scores))


def from_risk(measure: Measure, risks: Any) -> Any:
    """Return the scores from which `as_risk` computed some risks."""
    if not measure.low_is_risky:
        return risks
    # The negative of 0 would be -0.0.
    return _swapped(measure, 0 - risks, _last(risks), 0)


def _last(scores: Any) -> float:
    """Return a number beyond all scores of their type."""
    import numpy as np

    return math.inf if scores.dtype.kind == "f" else int(np.iinfo(scores.dtype).max)


def _swapped(measure: Measure, scores: Any, before: float, after: float) -> Any:
    """Return scores with `after` in place of `before`, if a score of 0 may mean that nobody is in the cohort.

    Sizes that are whole numbers are never 0.
    """
    import numpy as np

    counts_values = measure.statistic is not None and measure.statistic.kind == "VALUES"
    may_be_0 = counts_values or (measure.is_size and scores.dtype.kind == "f")
    return np.where(scores == before, after, scores) if may_be_0 else scores


def as_weighted(measure: Measure) -> Measure:
    """Return the measure for a table with sampling weights: sizes are float64, as numbers of people have fractions."""
    return replace(measure, dtype="float64") if measure.dtype and measure.is_size else measure


def deduplicate(measures: Sequence[Measure]) -> tuple[list[Measure], list[int]]:
    """Return the measures that are computed apart, and for each measure the index of the computed measure it shares.

    Measures that differ only in `weighted` (CIG and weighted CIG) share the computed scores.
    """
    computed = [(measure.cell, measure.statistic) for measure in measures]
    distinct = list(dict.fromkeys(computed))
    return [measures[computed.index(key)] for key in distinct], [distinct.index(key) for key in computed]


def wanted_of(measures: Sequence[Measure], unit: float | None = None) -> WantedMeasures:
    """Return the measures in the form that kernels take. A statistic that several measures need occurs once.

    unit: the number of people that counts as 1 in sizes of cohorts, if there are sampling weights. Default: None, 1.
    """
    import numpy as np

    from gpupif.kernels import formulas, statistics
    from gpupif.kernels.cohorts import WantedMeasures

    needed = list(dict.fromkeys(measure.statistic for measure in measures if measure.statistic is not None))
    return WantedMeasures(
        np.array([getattr(formulas, measure.cell) for measure in measures]),
        np.array([-1 if measure.statistic is None else needed.index(measure.statistic) for measure in measures]),
        np.array([getattr(statistics, statistic.kind) for statistic in needed], np.int64),
        np.array([statistic.order for statistic in needed], np.float64),
        np.array([1.0 if unit is None else unit]),
    )
