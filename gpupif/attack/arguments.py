"""The arguments of `score` and `score_files` that define the request: checked without a table, then with a table."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..errors import InputError
from ..measures import POPULATION_SIZE, Measure, as_weighted, resolve_measures
from ..utils.validation import Columns, as_list, as_mapping, check_exist, check_unique, check_weights, check_word
from .attackers import AGGREGATES, AnyKnown, Known, aggregate_name, among_of, how_many
from .distances import CategoryOrder
from .hierarchy_files import read_named_files
from .population import Population
from .prior_files import as_accuracies, as_priors
from .request import MISSING, ScoreRequest, resolve_columns

Measures = str | Iterable[str]
# The permitted types of an attacker's knowledge: columns, any few of some, or any number of all columns.
Knowledge = Known | int


@dataclass(frozen=True)
class Arguments:
    """The request of a call, checked without the table; see `gpupif.score`. attackers: None for a single attacker."""

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
    def from_user(
        cls,
        measures: Measures,
        columns: Columns | None = None,
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
        """Return the checked arguments of `gpupif.score`, except the table. Raise InputError."""
        wanted = resolve_measures(measures)
        check_word("missing", missing, MISSING)
        check_word("dtype", dtype, ("float64", "float32"))
        attack = as_known("known", known), as_attackers(attackers, known)
        shares = as_priors(priors), as_accuracies(accuracies)
        apart = read_named_files("distances", distances)
        people = Population.from_any(population)
        scored = None if columns is None else as_list("columns", columns)
        return cls(wanted, scored, *attack, *shares, apart, weights, people, missing, dtype)

    def needed(self, names: Sequence[str]) -> list[str] | None:
        """Return the columns of a file that are needed; None for all. names: columns of the file. Raise InputError for
        others.
        """
        attacker: list[Hashable] = []
        for argument, known in self._known_by_argument.items():
            if isinstance(known, AnyKnown):
                argument, theirs = among_of(argument), list(known.among or ())
            else:
                theirs = [] if known is None else list(known)
            check_exist(argument, theirs, names)
            attacker += theirs
        if self.columns is None:
            return None
        scored_columns = list(self.columns)
        self._check_mappings(names, [*scored_columns, *attacker])
        check_exist("columns", scored_columns, names)
        check_weights(self.weights, names)
        wanted = {*scored_columns, *attacker, *self._weights}
        return [name for name in names if name in wanted]

    def make_request(
        self,
        names: Sequence[Hashable],
        index_names: Sequence[Hashable] = (),
        orders: Mapping[Hashable, Sequence[Any]] | None = None,
    ) -> ScoreRequest:
        """Return the request for a table. names: its columns. index_names: columns that only label rows. Raise
        InputError.

        orders: of ordered categories, unless `distances` says otherwise.
        """
        if names:
            check_unique(names)
            check_weights(self.weights, names)
        # A weight is no fact about a person: it is scored only where it is asked for.
        labels = [*index_names, *self._weights]
        # The class of a row is over the scored column too.
        of_rows = all(measure.is_row_measure for measure in self.measures)
        found = [
            resolve_columns(names, labels, self.columns, theirs, of_rows, argument)
            for argument, theirs in self._known_by_argument.items()
        ]
        scored_columns = found[0][0]
        each = [attacker for _, attacker in found]
        known = list(dict.fromkeys(column for one in each for column in one.known))
        wanted = {*scored_columns, *known}
        used = [name for name in names if name in wanted]
        priors, accuracies, distances = self._check_mappings(names, used)
        return ScoreRequest(
            scored_columns,
            known,
            used,
            priors,
            accuracies,
            {**{name: CategoryOrder(order) for name, order in (orders or {}).items()}, **distances},
            self.missing,
            self.measures if self.weights is None else tuple(map(as_weighted, self.measures)),
            self.dtype,
            self.weights,
            each[0].any_known if self.attackers is None else None,
            None if self.attackers is None else dict(zip(self.attackers, each, strict=True)),
            self.population is not None,
        )

    def known_sets(self, columns: int) -> int:
        """Return about the number of sets of known columns that a table is scored against. columns: its number of
        columns.
        """
        sets = 0
        for known in self._known_by_argument.values():
            if isinstance(known, AnyKnown):
                possible = math.comb(max(0, columns - 1) if known.among is None else len(known.among), known.known)
                sets += possible if known.subsets is None else min(possible, known.subsets)
            else:
                sets += 1
        return max(1, sets)

    @property
    def names(self) -> list[str]:
        """The names of the measures of cells, including the measure of a population."""
        return [measure.name for measure in (*self.measures, *([] if self.population is None else [POPULATION_SIZE]))]

    @property
    def outputs(self) -> dict[str | None, list[str]]:
        """The names of the outputs of each cell, by attacker; an attacker without a name is under None."""
        names, each = self.names, {None: self.known} if self.attackers is None else self.attackers
        both = [aggregate_name(measure, what) for measure in names for what in AGGREGATES]
        return {name: both if isinstance(known, AnyKnown) else names for name, known in each.items()}

    @property
    def _weights(self) -> list[Hashable]:
        """The column of weights, in a list; an empty list if there is none."""
        return [] if self.weights is None else [self.weights]

    @property
    def _known_by_argument(self) -> dict[str, Known]:
        """The knowledge of each attacker, by the attacker's name in messages."""
        if self.attackers is None:
            return {"known": self.known}
        return {f"attackers: {name!r}": known for name, known in self.attackers.items()}

    def _check_mappings(
        self, names: Sequence[Hashable], used: Sequence[Hashable]
    ) -> tuple[Mapping[Any, Any], Mapping[Any, Any], Mapping[Any, Any]]:
        """Priors, accuracies and distances, by column; raises InputError for a column that is not used."""
        return (
            as_mapping("priors", self.priors, names, used),
            as_mapping("accuracies", self.accuracies, names, used),
            as_mapping("distances", self.distances, names, used, table=False),
        )


def as_known(argument: str, known: Any) -> Known:
    """Return the checked knowledge of an attacker. A number is `AnyKnown` of this number. Raise InputError.

    A plan has the fields of an `AnyKnown` as a dictionary.
    """
    if isinstance(known, Mapping) and "known" in known and {*known} <= {own.name for own in fields(AnyKnown)}:
        return AnyKnown(**known)
    if known is None or isinstance(known, AnyKnown):
        return known
    if isinstance(known, int | float | np.integer | np.floating):
        return AnyKnown(how_many(argument, known))
    return as_list(argument, known)


def as_attackers(attackers: Any, known: Any = None) -> dict[str, Known] | None:
    """Return the knowledge of each attacker, by name.

    Raises InputError for what is no such dictionary, or if `known` is given too.
    """
    if attackers is None:
        return None
    if not isinstance(attackers, Mapping):
        raise InputError(
            f"attackers: expected a dictionary of what each knows, {{name: [columns]}}, got {type(attackers).__name__}."
        )
    if known is not None:
        raise InputError("attackers: expected attackers= or known=, not both. Leave out one of them.")
    if not attackers:
        raise InputError("attackers: expected at least one, got an empty dictionary.")
    for name in attackers:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"attackers: expected names that are text, got {name!r}.")
    return {name: as_known(f"attackers: {name!r}", columns) for name, columns in attackers.items()}
