"""Estimates of the number of people who are unique in the population, from the equivalence classes of a sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from ..utils.display import Record
from ..utils.docs import documented_as
from ..utils.validation import MOST, brief, check_word, share, whole_number
from .class_risks import class_risks
from .class_sizes import histogram_of
from .uniques_models import NoEstimateError, fit_pitman, log_rising, pitman_uniques, slide_uniques

# The highest sampling fraction at which the rule of Dankar et al. takes Pitman's model.
SMALL_FRACTION = 0.1


@dataclass(frozen=True)
class PopulationUniques(Record):
    """The estimated uniques in the population of a sample; made by `population_uniques`.

    model: str. The model of the estimate: "pitman", "zayatz" or "snb"; "sample" if the sample is the population.
    uniques: float, from 0 to population. Estimated people who are alone in their class. NaN if the model has no answer.
    unique_share: float, in [0, 1]. uniques / population.
    population: int. People of the population.
    sampling_fraction: float, in (0, 1]. rows / population.
    rows: int. Rows of the sample.
    sample_uniques: int. Rows of the sample that are alone in their class.
    estimates: mapping of model to estimated uniques. NaN for a model without an answer.
    reasons: mapping of model to str. The reason why a model has no answer.
    """

    model: str
    uniques: float
    unique_share: float
    population: int
    sampling_fraction: float
    rows: int
    sample_uniques: int
    estimates: Mapping[str, float]
    reasons: Mapping[str, str]


@documented_as(class_risks)
def population_uniques(
    class_sizes: Any,
    rows: int | None = None,
    *,
    population: int | None = None,
    sampling_fraction: float | None = None,
    model: str = "dankar",
) -> PopulationUniques:
    """Estimate how many people are unique in the population from a simple random sample of it.

    Parameters
    ----------
    population, sampling_fraction:
        The people of the population N >= rows n; or the share f of these people that is in the sample, 0 < f <= 1 (N is
        then n / f, rounded). Give one of the two.
    model:
        "pitman": expected uniques by Pitman's sampling formula, its parameters fitted by maximum likelihood. "zayatz":
        sample uniques times the probability that a sample unique is unique in the population, s_1 / sum_i s_i P(1 | i),
        divided by f. s_i is the number of classes of i rows. P(1 | i) is hypergeometric: the probability that one
        person of a class of i people is sampled. "snb": slide negative binomial. "dankar" (default): the decision rule
        of Dankar et al. For f <= 0.1 it takes Pitman, or Zayatz if Pitman has no answer. For f > 0.1 it takes the lower
        of SNB and Zayatz, or Zayatz if SNB has no answer.

    Returns
    -------
    PopulationUniques
        The estimate, its model, and the estimates of all three models; NaN and a reason for a model without an answer.
        A sample without uniques gives 0 in every model. A sample that is the population (f = 1) gives its own uniques.

    Raises
    ------
    InputError
        Sizes that are no whole numbers from 1 on, neither or both of population and sampling_fraction, a population
        smaller than the sample, a fraction outside (0, 1], an unknown model.

    Notes
    -----
    ARX has the same models and rule. It takes Pitman's formula in the limit of large populations. Two terms of its SNB
    differ from the published formulas, so its SNB estimates differ.

    References
    ----------
    Dankar, El Emam, Neisa & Roffey 2012, Estimating the re-identification risk of clinical data sets, BMC Medical
    Informatics and Decision Making 12:66. Pitman: Hoshino 2001, Journal of Official Statistics 17(4). Zayatz 1991,
    Estimation of the number of unique population elements using a sample. SNB: Chen & Keller-McNulty 1998, the
    number of classes by Haas & Stokes 1998.

    Examples
    --------
    The sample has 20 of 100 people; 10 of the 20 are alone in their class:

    >>> found = population_uniques({1: 10, 2: 3, 4: 1}, population=100)
    >>> found.model, round(found.uniques, 2), round(found.unique_share, 4)
    ('snb', 19.55, 0.1955)
    >>> {name: round(uniques, 2) for name, uniques in found.estimates.items()}
    {'pitman': 12.76, 'zayatz': 29.51, 'snb': 19.55}

    """
    check_word("model", model, ("dankar", *MODELS))
    histogram = histogram_of(class_sizes, rows)
    total = sum(size * classes for size, classes in histogram.items())
    people, fraction = _population(total, population, sampling_fraction)
    uniques = histogram.get(1, 0)
    estimates, reasons = _estimates(histogram, total, people, fraction)
    chosen = model if model != "dankar" else decide(estimates, fraction)
    return PopulationUniques(
        model="sample" if people == total else chosen,
        uniques=estimates[chosen],
        unique_share=estimates[chosen] / people,
        population=people,
        sampling_fraction=fraction,
        rows=total,
        sample_uniques=uniques,
        estimates=estimates,
        reasons=reasons,
    )


def _estimates(
    histogram: Mapping[int, int], rows: int, people: int, fraction: float
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the estimated uniques by model, NaN for a model without an answer, and the reasons of these models."""
    uniques = histogram.get(1, 0)
    if uniques == 0 or people == rows:
        return dict.fromkeys(MODELS, float(uniques)), {}
    estimates: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for name, estimate in MODELS.items():
        try:
            estimates[name] = estimate(histogram, fraction, people)
        except NoEstimateError as error:
            estimates[name], reasons[name] = math.nan, str(error)
    return estimates, reasons


def decide(estimates: Mapping[str, float], fraction: float) -> str:
    """Return the model that the decision rule of Dankar et al. (2012) takes. estimates: NaN for no answer."""
    if fraction <= SMALL_FRACTION:
        return "zayatz" if math.isnan(estimates["pitman"]) else "pitman"
    return "snb" if estimates["snb"] <= estimates["zayatz"] else "zayatz"


def _population(rows: int, population: Any, fraction: Any) -> tuple[int, float]:
    """Return the people of the population, and the sampling fraction. Raises InputError."""
    if (population is None) == (fraction is None):
        came = "neither" if population is None else "both"
        raise InputError(f"population, sampling_fraction: expected one of them, got {came}.")
    if fraction is not None:
        given = share("sampling_fraction", fraction)
        if rows > given * MOST:
            raise InputError(
                f"sampling_fraction: expected a share of at most 2^62 people, of which the sample has {rows:,} rows; "
                f"got {brief(fraction)}."
            )
        return round(rows / given), given
    people = whole_number("population", population, "people")
    if people < rows:
        raise InputError(f"population: expected at least the {rows:,} rows of the sample, got {people:,}.")
    return people, rows / people


def _pitman(histogram: Mapping[int, int], fraction: float, population: int) -> float:
    return pitman_uniques(*fit_pitman(histogram), population)


def _zayatz(histogram: Mapping[int, int], fraction: float, population: int) -> float:
    """Return the estimate of Zayatz; see `population_uniques`.

    P(1 | i) is f i (N-n)! / (N-n-i+1)! (N-i)! / (N-1)!, and its f cancels the f of the final division by f.
    """
    rows = sum(size * classes for size, classes in histogram.items())
    left = population - rows
    seen_once = math.fsum(
        classes * size * math.exp(log_rising(left - size + 2, size - 1) - log_rising(population - size + 1, size - 1))
        for size, classes in histogram.items()
        if size - 1 <= left
    )
    return histogram[1] * (histogram[1] / seen_once) * (population / rows)


MODELS: dict[str, Callable[[Mapping[int, int], float, int], float]] = {
    "pitman": _pitman,
    "zayatz": _zayatz,
    "snb": slide_uniques,
}
