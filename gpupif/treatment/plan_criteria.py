"""The criteria of a plan: what the table that is treated by it must meet."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ..attack.arguments import as_attackers
from ..criteria.criterion import read_criteria
from ..criteria.criterion_set import check_attackers_used
from .field_checks import whole
from .suppression.suppress import risk_arguments
from .treatment import PlanPart


@dataclass(frozen=True)
class PlanCriteria(PlanPart):
    """Criteria that a treated table must meet, in the table ``[criteria]`` of a plan; `gpupif.protect` writes it.

    Parameters
    ----------
    require:
        Criteria as in `gpupif.protect`. The attacker knows the quasi-identifiers of the plan. An empty list: the
        treated table need not meet anything, whatever the treatments of the plan require.
    attackers, distances, weights, household, game, sampling_fraction, population_size:
        As in `gpupif.protect`, with names for the amounts of a game. A plan holds no population.
    missing:
        The reading of missing values, "category" or "wildcard". Default None: "category", and if the plan suppresses
        cells both.
    unmet:
        Why the plan does not do what was asked of `gpupif.protect`. Default None: it does.

    """

    do: ClassVar[str] = "criteria"

    require: Sequence[str] | str
    attackers: Mapping[str, Any] | None = None
    distances: Mapping[Hashable, Any] | None = None
    weights: Hashable | None = None
    household: Hashable | None = None
    game: Mapping[str, float] | None = None
    sampling_fraction: float | None = None
    population_size: Annotated[int | None, whole("people")] = None
    missing: Literal["category", "wildcard"] | None = None
    unmet: str | None = None

    def check(self) -> None:
        super().check()
        if len(self.require):
            check_attackers_used(as_attackers(self.attackers) or {}, read_criteria(self.require))
        risk_arguments(self)
