"""The arguments of `score` and `score_files` that say what is asked, checked as far as that takes no table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attack.known_subsets import AnyKnown, ask_any
from ..attack.population import Population
from ..attack.prior_files import as_accuracies, as_priors
from ..attack.request import ask, check_missing, check_word, needed_columns
from ..attack.worst_mean import folded_names
from ..errors import InputError
from ..measures import POPULATION_SIZE, Measure, resolve_measures
from ..utils.names import as_attackers

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..attack.request import Question
    from ..io.read import Pick

Measures = str | Iterable[str]
# What an attacker knows: columns, any so many of them, or all that are scored.
Known = Sequence[Hashable] | int | AnyKnown | None


def resolve_known(
    known: Any, attackers: Any
) -> tuple[AnyKnown | None, Sequence[Hashable] | None, Mapping[str, list[Hashable]] | None]:
    """What attackers know: any so many columns, columns by name, or several attackers by name what each knows.

    known, attackers: as of `gpupif.score`. All three are None for the default: all columns that are scored. Raises
    InputError.
    """
    if attackers is not None:
        for name, theirs in attackers.items() if isinstance(attackers, Mapping) else ():
            if as_any_known(theirs) is not None:
                raise InputError(
                    f"attackers: {name!r}: a number of columns that the attacker knows does not go beside other "
                    "attackers. Leave it out, or name the columns that are known."
                )
        return None, None, as_attackers(attackers, known)
    any_known = as_any_known(known)
    return any_known, None if any_known is not None else known, None


def as_any_known(known: Any) -> AnyKnown | None:
    """Any so many columns, where it says so many; None for columns by name. Raises InputError."""
    if isinstance(known, float | np.floating):
        raise InputError(
            f"known: expected a list of column names, or how many of them as a whole number, 2 say; got {known!r}."
        )
    if isinstance(known, int | np.integer) and not isinstance(known, bool):
        return AnyKnown(int(known))
    return known if isinstance(known, AnyKnown) else None


@dataclass(frozen=True)
class Arguments:
    """What is asked of a table; see `gpupif.score`.

    Of any_known, known and attackers at most one is given, see `resolve_known`.
    """

    measures: tuple[Measure, ...]
    columns: Sequence[Hashable] | None
    any_known: AnyKnown | None
    known: Sequence[Hashable] | None
    attackers: Mapping[str, Sequence[Hashable]] | None
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
        known: Known = None,
        attackers: Mapping[str, Known] | None = None,
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
        wildcard = check_missing(missing, population)
        check_word("dtype", dtype, ("float64", "float32"))
        any_known, by_name, several = resolve_known(known, attackers)
        if any_known is not None:
            refuse_with_any_known(weights=weights, population=population)
            refuse_with_any_known(**{"missing='wildcard'": wildcard or None})
        shares = as_priors(priors), as_accuracies(accuracies)
        people = Population.of(population)
        return cls(wanted, columns, any_known, by_name, several, *shares, distances, weights, people, missing, dtype)

    @property
    def needed(self) -> Pick:
        """Of a table's columns those that are needed."""
        known = self.known if self.any_known is None else self.any_known.among
        pick = needed_columns(
            self.columns, known, self.priors, self.accuracies, self.weights, self.attackers, self.distances
        )
        return pick if self.any_known is None else self.any_known.picking(pick)

    @property
    def outputs(self) -> list[str]:
        """The names of what each cell gets, of each attacker."""
        scored = [measure.name for measure in self.measures]
        scored = scored if self.any_known is None else folded_names(scored)
        return scored if self.population is None else [*scored, POPULATION_SIZE.name]

    @property
    def ask(self) -> Callable[..., Question]:
        """Takes the names of a table's columns, and of those that only label rows: what is asked of that table."""
        given: dict[str, Any] = {
            "measures": self.measures,
            "columns": self.columns,
            "priors": self.priors,
            "accuracies": self.accuracies,
            "distances": self.distances,
            "weights": self.weights,
            "attackers": self.attackers,
            "missing": self.missing,
            "dtype": self.dtype,
        }
        if self.any_known is not None:
            return partial(ask_any, self.any_known, **given)
        return partial(ask, known=self.known, **given)


def refuse_with_any_known(**arguments: Any) -> None:
    """Raise InputError for what does not go with a number of known columns, where it is given."""
    given = next((name for name, value in arguments.items() if value is not None), None)
    if given is not None:
        raise InputError(
            f"{given}: does not go with a number of columns that the attacker knows. Leave it out, or name the "
            "columns that are known."
        )
