"""The arguments of `protect`, checked: first without a table, then against a counted one."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..attack.arguments import as_attackers
from ..attack.attackers import AnyKnown, Known
from ..attack.hierarchy_files import read_named_files
from ..attack.request import MISSING
from ..criteria.class_criteria import REFERENCES, RELEASED
from ..criteria.counted_risk import arguments_for
from ..criteria.counted_scores import known_columns
from ..criteria.counted_table import CountedTable
from ..criteria.criterion import Criterion, read_criteria
from ..criteria.criterion_set import CriterionSet, check_attackers_used, named_by_attackers, named_columns
from ..criteria.quantities import ModelQuantity, RiskQuantity
from ..disclosure.request import check_values
from ..disclosure.risk_figures import NOTHING_GIVEN, RiskArguments
from ..errors import InputError, did_you_mean
from ..hierarchies.hierarchy import Hierarchy
from ..marginals.request import CountRequest
from ..treatment.suppression.suppress import refuse_population
from ..utils.validation import brief, check_exist, check_not_known, check_word, is_number
from .identifiers import ARGUMENTS, DROP
from .objectives import ObjectiveChoice, as_objective


@dataclass(frozen=True)
class ProtectRequest:
    """The arguments of `gpupif.protect`; raises InputError for arguments that do not go together.

    criteria: what the treated table has to meet.
    hierarchies: by column the hierarchies that are given.
    quasi_identifiers: columns that are made coarser; None for all that are neither sensitive nor identifiers.
    sensitive: columns that stay as they are, and that the attacker does not know.
    attackers: by name what each attacker knows.
    distances: by column how far its values are apart.
    importance: by column what a bit of it is worth, above 0; 1 for columns that are not named.
    suppress: the share of the rows that may be suppressed, from 0 to below 1.
    cells: whether single cells are suppressed, not whole rows.
    local: whether rows are recoded further before they are suppressed.
    time_limit: seconds, None for no limit.
    objective: what is minimised.
    identifiers: by column what the plan does with it: "drop", "pseudonymise" or "keep".
    given: the arguments of `gpupif.risk` that its figures need. missing: "category", "error" or "wildcard".
    strata: columns that the attacker knows, and that stay as they are. They are among `quasi_identifiers`.
    reference: the rows with which classes are compared if rows may be suppressed: "released" or "original".
    """

    criteria: Sequence[Criterion]
    hierarchies: Mapping[Hashable, Hierarchy]
    quasi_identifiers: Sequence[Hashable] | None
    sensitive: Sequence[Hashable]
    attackers: Mapping[str, Known]
    distances: Mapping[Any, Any]
    importance: Mapping[Hashable, float]
    suppress: Fraction
    cells: bool
    local: bool
    time_limit: float | None
    objective: ObjectiveChoice
    identifiers: Mapping[Hashable, str]
    given: RiskArguments = NOTHING_GIVEN
    missing: str = "category"
    strata: Sequence[Hashable] = ()
    reference: str = RELEASED

    def __post_init__(self) -> None:
        roles = {**self.given.columns, **self.identifiers, **dict.fromkeys(self.sensitive, "sensitive")}
        for name in self.strata:
            if name in roles:
                raise InputError(f"strata: column {name!r} has another role too. Name it in one of them only.")
        check_not_known(self.sensitive, self.quasi_identifiers or ())
        check_word("missing", self.missing, MISSING)
        check_word("reference", self.reference, REFERENCES)
        for name, argument in self.given.columns.items():
            if name in {*self.sensitive, *(self.quasi_identifiers or ())}:
                raise InputError(f"{argument}: column {name!r} has another role too. Name it in one of them only.")
        if self.cells:
            refuse_population(self.criteria, "cells")
        for name, given in (("cells", self.cells), ("local", self.local)):
            if not isinstance(given, bool):
                raise InputError(f"{name}: expected True or False, got {brief(given)}.")
        check_attackers_used(self.attackers, self.criteria)
        for name in self.distances:
            if name not in self.sensitive:
                raise InputError(
                    f"distances: column {name!r} is not sensitive: the values of quasi-identifiers change. Leave it "
                    "out."
                )
        self._check_identifiers()
        if self.importance and not self.cells and not self.objective.kind.weighs_columns:
            raise InputError(
                f"importance: the objective {self.objective.kind.name!r} is not a sum over columns, so that no column "
                "counts more. Leave importance= out, or choose another objective."
            )
        if self.suppress and not any(criterion.of_each_class for criterion in self.criteria):
            raise InputError(
                "suppress: expected with a criterion on each equivalence class, such as 'k>=5', 'distinct_l>=2' or "
                "'known=2: k>=3': rows of classes that break it are suppressed. Add one, or leave suppress= out."
            )
        if self.cells and not self.suppress:
            raise InputError(
                "cells: expected with suppress=, the share of the rows in which cells may be suppressed; got none."
            )
        if self.local:
            self._check_local()

    def _check_local(self) -> None:
        """Raise InputError for an argument that does not go with local recoding."""
        if not self.suppress:
            raise InputError(
                "local: expected with suppress=, the share of the rows that may be recoded further; got none."
            )
        if self.cells:
            raise InputError("local: does not go with cells=. Leave one of them out.")
        for criterion in self.criteria:
            if self.missing == "wildcard" and not criterion.is_of_sizes:
                raise InputError(
                    f"local: criterion {str(criterion)!r} does not go with missing='wildcard': a row with a missing "
                    "value also matches rows of other rounds, with which it may break the criterion. Leave one of them "
                    "out."
                )
            if not criterion.of_each_class:
                raise InputError(
                    f"local: criterion {str(criterion)!r} is not on each equivalence class: rows that are recoded "
                    "further could break it. Leave local= or the criterion out."
                )

    @property
    def named_by(self) -> dict[Hashable, str]:
        """Return by column the argument that names it, as errors say it; quasi-identifiers are left out."""
        named = _named_by(self.criteria, self.quasi_identifiers, self.sensitive, self.attackers, self.objective)
        return named if self.quasi_identifiers is None else {**named, **self.given.columns}

    def columns(self, names: Sequence[Hashable], labels: Sequence[Hashable]) -> list[Hashable] | None:
        """Return the columns that are read of a table with columns `names` and row labels, None for all.

        Raises ColumnNotFoundError for an identifier that is not there.
        """
        for name, done in self.identifiers.items():
            check_exist(ARGUMENTS[done], [name], [*names, *labels])
        if self.quasi_identifiers is not None:
            return list(dict.fromkeys([*self.quasi_identifiers, *self.named_by]))
        if not self.identifiers:
            return None
        known = _known_by_attackers(self.criteria, self.attackers)
        unread = {name for name in self.identifiers if name not in self.given.columns and str(name) not in known}
        return [name for name in names if name not in unread]

    def not_named(self, names: Sequence[Hashable], labels: Sequence[Hashable]) -> tuple[list[Hashable], list[Hashable]]:
        """Return the columns and row labels of a table that no argument names.

        The second list has those among them that are made coarser.
        """
        named = {*self.sensitive, *self.identifiers, *(self.quasi_identifiers or ()), *self.given.columns}
        left = [name for name in names if name not in named]
        return [*left, *(name for name in labels if name not in named)], left if self.quasi_identifiers is None else []

    def _check_identifiers(self) -> None:
        """Raise InputError for an identifier that another argument names, or that the attacker is to know."""
        known = _known_by_attackers(self.criteria, self.attackers)
        for name, done in self.identifiers.items():
            argument = ARGUMENTS[done]
            for others, what in ((self.quasi_identifiers or (), "a quasi-identifier"), (self.sensitive, "sensitive")):
                if name in others:
                    raise InputError(f"{argument}: column {name!r} is {what} too. Name it in one of them only.")
            if done == DROP and str(name) == self.objective.column:
                raise InputError(
                    f"objective: column {name!r} is an identifier, which the plan drops. Name a column that stays as "
                    "it is, or name this column in keep=."
                )
            if done == DROP and str(name) in known:
                raise InputError(
                    f"{known[str(name)]}: column {name!r} is an identifier, which the plan drops, so that nobody finds "
                    "it in the table. Leave it out of what the attacker knows, or name it in keep=."
                )

    def on_table(self, table: CountedTable) -> CriterionSet:
        """Return the criteria for a table.

        Raises InputError for an argument that does not fit the table.
        """
        names = table.names
        check_exist("sensitive", self.sensitive, names)
        known = self.quasi_identifiers
        given = arguments_for(self.given, table)
        if known is None:
            others = {*self.sensitive, *self.identifiers, *self.given.columns}
            known = [name for name in names if name not in others]
        if not known:
            raise InputError("quasi_identifiers: expected at least one column that is not sensitive, got none.")
        for name, argument in named_by_attackers(self.attackers).items():
            check_exist(argument, [name], names)
        check_exist("strata", self.strata, names)
        for name in self.hierarchies:
            _check_quasi_identifier("hierarchies", name, known, self.hierarchies, names, only_misspelt=True)
        for name in self.importance:
            _check_quasi_identifier("importance", name, known, self.importance, names)
        if self.objective.column is not None:
            _check_predicted(self.objective.column, known, table)
        criteria = CriterionSet.from_arguments(
            self.criteria,
            known,
            self.sensitive,
            self.attackers or None,
            self.distances,
            names,
            self.missing,
            given,
        )
        for criterion in self.criteria:
            quantity, own = criterion.quantity, criteria.known(criterion)
            for name in self.strata:
                if isinstance(own, AnyKnown) or name not in own:
                    raise InputError(
                        f"strata: criterion {str(criterion)!r} is of an attacker who need not know column {name!r}, so "
                        "that it would not hold within strata. Let the attacker know the column, or leave one of them "
                        "out."
                    )
            for name in self.sensitive:
                if isinstance(quantity, ModelQuantity) and quantity.sensitive and quantity.column in (None, str(name)):
                    check_values(table.columns[table.place(name)])
        return criteria


def figures_of_risk(criteria: CriterionSet) -> CriterionSet:
    """Return the criteria that are on figures of `gpupif.risk`."""
    some = [criterion for criterion in criteria.criteria if isinstance(criterion.quantity, RiskQuantity)]
    return criteria.with_criteria(some)


def population_columns(criteria: CriterionSet) -> list[Hashable]:
    """Return the columns of the population that criteria need: those that their attackers know."""
    names: dict[Hashable, None] = {}
    for criterion in criteria.criteria:
        if isinstance(criterion.quantity, RiskQuantity) and "population" in criterion.quantity.figure.needs:
            names |= dict.fromkeys(known_columns(criteria.known(criterion)))
    return list(names)


def _check_predicted(column: str, known: Sequence[Hashable], table: CountedTable) -> None:
    """Raise InputError for a column of an objective that is not there, that the plan changes, or that has one value.

    known: the quasi-identifiers.
    """
    found = next((name for name in table.names if str(name) == column), None)
    if found is None:
        check_exist("objective", [column], table.names)
    if found in known:
        raise InputError(
            f"objective: column {found!r} is a quasi-identifier, which the plan makes coarser, so that less and less "
            "would be left to predict. Name a column that stays as it is, or name this column in sensitive=."
        )
    if table.columns[table.place(found)].cardinality < 2:
        raise InputError(f"objective: column {found!r} has the same value in all rows: there is nothing to predict.")


def columns_read(
    require: Any,
    quasi_identifiers: Sequence[Hashable] | None,
    sensitive: Sequence[Hashable],
    attackers: Any,
    identifiers: Mapping[Hashable, str],
    objective: str,
    names: Sequence[str],
    others: Mapping[Hashable, str] | None = None,
) -> list[str] | None:
    """Return the columns of a file that `protect` reads, None for all. Raises InputError.

    identifiers, others: by column the argument that names it; these columns must exist. names: the columns of the file.
    """
    named_by = _named_by(
        read_criteria(require), quasi_identifiers, sensitive, as_attackers(attackers) or {}, as_objective(objective)
    )
    columns = None
    if quasi_identifiers is not None:
        named_by |= others or {}
        columns = list(dict.fromkeys([*quasi_identifiers, *named_by, *identifiers]))
    return CountRequest(columns, argument="quasi_identifiers", named_by={**identifiers, **named_by}).pick(names)


def _named_by(
    criteria: Sequence[Criterion],
    quasi_identifiers: Sequence[Hashable] | None,
    sensitive: Sequence[Hashable],
    attackers: Mapping[str, Known],
    objective: ObjectiveChoice,
) -> dict[Hashable, str]:
    """Return by column the argument that names it, as errors say it, without quasi-identifiers.

    The result is empty if all columns are read, which is so without quasi_identifiers.
    """
    if quasi_identifiers is None:
        return {}
    scored = [*quasi_identifiers, *sensitive]
    argument_of = {**named_by_attackers(attackers), **dict.fromkeys(sensitive, "sensitive")}
    for criterion in criteria:
        if isinstance(criterion.known, tuple):
            for name in named_columns(criterion.known, scored):
                argument_of.setdefault(name, f"criterion {str(criterion)!r}")
    if objective.column is not None:
        argument_of.setdefault(named_columns([objective.column], scored)[0], "objective")
    return {name: argument for name, argument in argument_of.items() if name not in quasi_identifiers}


def _known_by_attackers(criteria: Sequence[Criterion], attackers: Mapping[str, Known]) -> dict[str, str]:
    """Return the columns that attackers know, by the text of the name, with the argument that says so."""
    argument_of = {str(name): argument for name, argument in named_by_attackers(attackers).items()}
    for criterion in criteria:
        for name in criterion.known if isinstance(criterion.known, tuple) else ():
            argument_of.setdefault(name, f"criterion {str(criterion)!r}")
    return argument_of


def _check_quasi_identifier(
    argument: str,
    name: Hashable,
    known: Sequence[Hashable],
    given: Mapping[Hashable, Any],
    names: Sequence[Hashable],
    only_misspelt: bool = False,
) -> None:
    """Raise InputError if an argument names a column that the table has not.

    known: the quasi-identifiers. only_misspelt: allow a column that the table has not, unless the name is like one of
    them: a file of hierarchies may serve several tables.
    """
    hint = did_you_mean(str(name), [str(other) for other in known if other not in given])
    if name not in names and (hint or not only_misspelt):
        listed = ", ".join(map(repr, known))
        raise InputError(f"{argument}: column {name!r} is no quasi-identifier.{hint} There are: {listed}.")


def as_importance(importance: Any) -> dict[Hashable, float]:
    """Return what a bit of each column is worth, from the argument of `protect`. Raises InputError."""
    if importance is None:
        return {}
    if not isinstance(importance, Mapping):
        raise InputError(f"importance: expected {{column: importance}}, got {brief(importance)}.")
    for name, value in importance.items():
        if not is_number(value) or not 0 < value < math.inf:
            raise InputError(f"importance: column {name!r}: expected a number above 0, got {brief(value)}.")
    return {name: float(value) for name, value in importance.items()}


def as_share_of_rows(suppress: Any) -> Fraction:
    """Return the share of the rows exactly as it was written, so that 0.29 of 100 rows are 29. Raises InputError."""
    if not is_number(suppress) or not 0 <= suppress < 1:
        hint = " Divide percentages by 100." if is_number(suppress) and 1 <= suppress <= 100 else ""
        raise InputError(f"suppress: expected a share of the rows from 0 to below 1, got {brief(suppress)}.{hint}")
    return Fraction(repr(float(suppress)))


def as_seconds(time_limit: Any) -> float | None:
    """Return a time limit in seconds, None for no limit. Raises InputError."""
    if time_limit is None:
        return None
    if not is_number(time_limit) or not time_limit > 0:
        raise InputError(f"time_limit: expected seconds above 0, or None for no limit; got {brief(time_limit)}.")
    return float(time_limit)


def as_distances(distances: Any) -> Mapping[Any, Any]:
    """Return distances by column, read from their files. Raises InputError."""
    read = read_named_files("distances", distances) or {}
    if not isinstance(read, Mapping):
        raise InputError(f"distances: expected {{column: distance}}, got {brief(distances)}.")
    return read
