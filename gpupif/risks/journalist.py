"""The equivalence classes of a table in the population that it is a part of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpupif.population import match_population, open_population

from .classes import PopulationRisks, population_risks

if TYPE_CHECKING:
    from gpupif.columns import Column


def risks_in(population: Any, known: Sequence[Column], missing: str, lacks: str, threshold: float) -> PopulationRisks:
    """Journalist and marketer risk of a table in a population, a table of its own with the quasi-identifiers.

    known: the quasi-identifiers of the table. missing, lacks: as `missing` and `population_lacks` of `gpupif.risk`.
    Raises InputError where the table is no part of the population.
    """
    frame = open_population(population, [column.name for column in known])
    people = match_population(frame, known, missing, lacks)
    found = np.flatnonzero(people.sampled)
    return population_risks(people.sampled[found], people.times[found], threshold=threshold)
