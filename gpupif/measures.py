"""The measures of a cell: one entry each, its formula in `kernels/formulas.py`. A new measure is a new entry here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .errors import InputError


@dataclass(frozen=True)
class Measure:
    """What a measure is called, means and needs.

    name: as in `measures=` and in output columns. number: its constant in `kernels/formulas.py`. unit: of its values.
    needs_gain: computed from the cohort's divergence, a sum over the values in the cohort. weighted: multiplied by
    the column's weight when that is known. low_is_risky: the riskiest cells are those with the lowest values. integer:
    counts rows, so it is kept as int64 whatever `dtype` says.
    """

    name: str
    number: int
    unit: str
    meaning: str
    needs_gain: bool = False
    weighted: bool = False
    low_is_risky: bool = False
    integer: bool = False


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure("cig", 0, "bits", "cell information gain: divergence of posterior from prior", needs_gain=True),
        Measure("wcig", 1, "bits", "CIG times the column's weight H(X|known) / H(X)", needs_gain=True, weighted=True),
        Measure("csf", 2, "probability", "cell surprise factor: |posterior - prior| of the cell's value"),
        Measure("posterior", 3, "probability", "probability of the cell's value within its cohort"),
        Measure(
            "prior", 4, "probability", "probability of the cell's value before anything is known", low_is_risky=True
        ),
        Measure(
            "cohort_size",
            5,
            "rows",
            "rows that agree on everything the attacker knows",
            low_is_risky=True,
            integer=True,
        ),
    )
}


# Scored beside those that were asked for where there is a population.
POPULATION_SIZE = Measure(
    "population_size",
    -1,
    "rows",
    "rows of the population that agree on everything the attacker knows",
    low_is_risky=True,
    integer=True,
)


def find_measure(name: str) -> Measure:
    """The measure of this name."""
    return POPULATION_SIZE if name == POPULATION_SIZE.name else MEASURES[name]


def resolve_measures(names: str | Iterable[str]) -> tuple[Measure, ...]:
    """The measures named, in the order given, each once.

    Raises InputError for a name that is none, or for no name at all.
    """
    wanted = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    unknown = [name for name in wanted if not isinstance(name, str) or name not in MEASURES]
    if unknown or not wanted:
        came = ", ".join(repr(name) for name in unknown) or "none"
        raise InputError(f"measures: expected some of {', '.join(MEASURES)}; got {came}.")
    return tuple(MEASURES[name] for name in dict.fromkeys(wanted))
