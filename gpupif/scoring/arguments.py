"""The arguments of `score` and `score_files` that say what is asked, checked as far as that takes no table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ..attack.known_subsets import Known, as_attackers, as_known, outputs_of
from ..attack.population import Population
from ..attack.prior_files import as_accuracies, as_priors
from ..attack.request import MISSING, make_request, needed_columns
from ..measures import POPULATION_SIZE, Measure, resolve_measures
from ..utils.validation import check_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..attack.request import ScoreRequest
    from ..io.common import Pick

Measures = str | Iterable[str]
# What may be said of what an attacker knows: columns, any few of some, or of all by their number.
Knowledge = Known | int


@dataclass(frozen=True)
class Arguments:
    """What is asked of a table; see `gpupif.score`. attackers: None where there is one, who knows `known`."""

    measures: tuple[Measure, ...]
    columns: Sequence[Hashable] | None
    known: Known
    attackers: Mapping[str, Known] | None
    priors: Mapping[Any, Mapping[Any, float]] | None
    accuracies: Mapping[Any, float] | None
    distances: Mapping[Any, Any] | None
    weights: Hashable
    population: Population | None
    missing: str
    dtype: str

    @classmethod
    def of(
        cls,
        measures: Measures,
        columns: Sequence[Hashable] | None = None,
        *,
        known: Knowledge = None,
        attackers: Mapping[str, Knowledge] | None = None,
        priors: Any = None,
        accuracies: Any = None,
        distances: Mapping[Any, Any] | None = None,
        weights: Hashable = None,
        population: Any = None,
        missing: str = "category",
        dtype: str = "float64",
    ) -> Arguments:
        """From arguments as they come; raises InputError."""
        wanted = resolve_measures(measures)
        check_word("missing", missing, MISSING)
        check_word("dtype", dtype, ("float64", "float32"))
        attack = as_known("known", known), as_attackers(attackers, known)
        shares = as_priors(priors), as_accuracies(accuracies)
        people = Population.of(population)
        return cls(wanted, columns, *attack, *shares, distances, weights, people, missing, dtype)

    @property
    def needed(self) -> Pick:
        """Of a table's columns those that are needed."""
        return needed_columns(
            self.columns, self.known, self.priors, self.accuracies, self.weights, self.attackers, self.distances
        )

    @property
    def outputs(self) -> dict[str | None, list[str]]:
        """The names of what each cell gets, by attacker, of one without a name under None."""
        measured = [*self.measures, *([] if self.population is None else [POPULATION_SIZE])]
        return outputs_of(self.attackers, self.known, [measure.name for measure in measured])

    @property
    def make_request(self) -> Callable[..., ScoreRequest]:
        """Takes the names of a table's columns, and of those that only label rows: what is asked of that table."""
        return partial(
            make_request,
            measures=self.measures,
            columns=self.columns,
            known=self.known,
            priors=self.priors,
            accuracies=self.accuracies,
            missing=self.missing,
            dtype=self.dtype,
            weights=self.weights,
            attackers=self.attackers,
            distances=self.distances,
        )
