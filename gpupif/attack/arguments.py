"""From the arguments of `score` and `score_files` that say what is asked to a request of a table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, NothingKnownWarning, warn
from ..measures import POPULATION_SIZE, Measure, as_weighted, resolve_measures
from ..utils.validation import as_list, as_mapping, check_exist, check_unique, check_weights, check_word
from .distances import CategoryOrder
from .known_subsets import AnyKnown, Known, as_attackers, as_known, check_known, outputs_of
from .population import Population
from .prior_files import as_accuracies, as_priors
from .request import MISSING, Attacker, ScoreRequest

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
    def outputs(self) -> dict[str | None, list[str]]:
        """The names of what each cell gets, by attacker, of one without a name under None."""
        measured = [*self.measures, *([] if self.population is None else [POPULATION_SIZE])]
        return outputs_of(self.attackers, self.known, [measure.name for measure in measured])

    @property
    def _known_by_argument(self) -> dict[str, Known]:
        """What each attacker knows, by what messages call it."""
        if self.attackers is None:
            return {"known": self.known}
        return {f"attackers: {name!r}": known for name, known in self.attackers.items()}

    def needed(self, names: Sequence[Hashable]) -> list[Any] | None:
        """Of a table's columns those that are needed, None for all; raises InputError for unknown ones."""
        known: list[Hashable] = []
        for argument, theirs in self._known_by_argument.items():
            argument, named = ("among", theirs.among) if isinstance(theirs, AnyKnown) else (argument, theirs)
            check_exist(argument, named or (), names)
            known += named or ()
        if self.columns is None:
            return None
        targets = as_list("columns", self.columns)
        self._by_column(names, [*targets, *known])
        check_exist("columns", targets, names)
        check_weights(self.weights, names)
        return [name for name in names if name in {*targets, *known, *self._labels}]

    def request(
        self,
        names: Sequence[Hashable],
        index_names: Sequence[Hashable] = (),
        orders: Mapping[Hashable, Sequence[Any]] | None = None,
    ) -> ScoreRequest:
        """What is asked of a table with columns `names`, of which `index_names` only label rows; raises InputError.

        orders: of ordered categories, unless `distances` says otherwise.
        """
        if not names:
            raise InputError("table: expected at least one column, got none.")
        check_unique(names)
        check_weights(self.weights, names)
        # The class of a row is over the scored column too.
        of_rows = all(measure.is_row_measure for measure in self.measures)
        # A weight is no fact about a person: it is scored only where it is asked for.
        labels = [*index_names, *self._labels]
        found = [
            _resolve_columns(names, labels, self.columns, known, of_rows, argument)
            for argument, known in self._known_by_argument.items()
        ]
        targets, each = found[0][0], [attacker for _, attacker in found]
        attacker = list(dict.fromkeys(column for one in each for column in one.known))
        used = [name for name in names if name in {*targets, *attacker}]
        priors, accuracies, distances = self._by_column(names, used)
        ordered = {name: CategoryOrder(order) for name, order in (orders or {}).items()}
        return ScoreRequest(
            targets,
            attacker,
            used,
            priors,
            accuracies,
            {**ordered, **distances},
            self.missing,
            self.measures if self.weights is None else tuple(map(as_weighted, self.measures)),
            self.dtype,
            self.weights,
            each[0].any_known if self.attackers is None else None,
            None if self.attackers is None else dict(zip(self.attackers, each, strict=True)),
        )

    @property
    def _labels(self) -> list[Hashable]:
        """The column of weights, if there is one."""
        return [] if self.weights is None else [self.weights]

    def _by_column(self, names: Sequence[Hashable], used: Sequence[Hashable]) -> tuple[Any, Any, Any]:
        """Priors, accuracies and distances, checked against all columns of a table and those that are used."""
        return (
            as_mapping("priors", self.priors, names, used),
            as_mapping("accuracies", self.accuracies, names, used),
            as_mapping("distances", self.distances, names, used, table=False),
        )


def _resolve_columns(
    names: Sequence[Hashable],
    labels: Sequence[Hashable],
    columns: Sequence[Hashable] | None,
    known: Known,
    of_rows: bool,
    argument: str,
) -> tuple[list[Hashable], Attacker]:
    """Targets and what the attacker knows, in the order asked for, checked against the table.

    of_rows: whether a scored column may be all that is known. argument: what messages call `known`.
    """
    default = [name for name in names if name not in labels] or list(names)
    targets = default if columns is None else as_list("columns", columns)
    if not targets:
        raise InputError("columns: expected at least one column to score, got an empty list.")
    check_exist("columns", targets, names)
    if isinstance(known, AnyKnown):
        check_exist("among", known.among or (), names)
        pool = list(targets) if known.pool is None else list(known.pool)
        check_known(argument, known, targets, pool if known.known else targets)
        return targets, Attacker(pool, known)
    attacker = list(targets if known is None else known)
    check_exist(argument, attacker, names)
    separators = columns is None and set(str(targets[0])) & set(",;\t| ")
    if known is None and len(targets) == 1 and (separators or (columns is not None and not of_rows)):
        mend = "Is the separator right?" if columns is None else "Name the columns the attacker knows with known=."
        warn(
            f"columns: only {targets[0]!r} is scored, so by default the attacker knows nothing and every cohort is the "
            f"whole table. {mend}",
            NothingKnownWarning,
        )
    elif known is not None and len(attacker) == 1 and attacker[0] in targets and not of_rows:
        warn(
            f"{argument}: the attacker knows only {attacker[0]!r}, so nothing when that column is scored itself: every "
            f"cohort is the whole table. Name further columns with {argument.partition(':')[0]}=.",
            NothingKnownWarning,
        )
    return targets, Attacker(attacker)
