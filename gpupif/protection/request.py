"""What is asked of `protect`, checked: without a table, then against one that is counted."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..attack.known_subsets import Known, as_attackers
from ..criteria.counted import CountedTable
from ..criteria.criterion import Criterion, read_criteria
from ..criteria.criterion_set import CriterionSet, named_by_attackers, named_columns
from ..criteria.quantities import OfModel
from ..disclosure.request import check_values
from ..errors import InputError, did_you_mean
from ..hierarchies.base import Hierarchy
from ..hierarchies.open import open_hierarchies
from ..hierarchies.proposals import propose_hierarchy
from ..marginals.request import CountRequest
from ..treatment.base import Treatment
from ..treatment.plan import Plan
from ..treatment.suppression.suppress import Suppress
from ..treatment.suppression.suppress_rows import SuppressRows
from ..treatment.value_maps.recode import Recode
from ..utils.validation import as_columns, brief, check_exist, is_number
from .checks import Suppression
from .identifiers import ARGUMENTS, DROP, as_identifiers


@dataclass(frozen=True)
class ProtectRequest:
    """The arguments of `gpupif.protect`, checked.

    quasi_identifiers: None for all columns that are neither sensitive nor identifiers. identifiers: by column what is
    done with it.
    """

    limits: Sequence[Criterion]
    given: Mapping[Hashable, Hierarchy]
    quasi_identifiers: Sequence[Hashable] | None
    sensitive: Sequence[Hashable]
    attackers: Mapping[str, Known]
    distances: Mapping[Any, Any]
    weights: Mapping[Hashable, float]
    suppress: Fraction
    cells: bool
    time_limit: float | None
    identifiers: Mapping[Hashable, str]

    @classmethod
    def of(
        cls,
        table: Any,
        criteria: Any,
        *,
        hierarchies: Any,
        quasi_identifiers: Any,
        sensitive: Any,
        attackers: Any,
        distances: Any,
        weights: Any,
        suppress: Any,
        cells: Any,
        time_limit: Any,
        identifiers: Any = None,
        pseudonymise: Any = None,
        keep: Any = None,
    ) -> ProtectRequest:
        """From arguments as they come; raises InputError."""
        limits = read_criteria(criteria)
        known = None if quasi_identifiers is None else as_columns("quasi_identifiers", quasi_identifiers, table)
        attributes = [] if sensitive is None else as_columns("sensitive", sensitive, table)
        both = [name for name in attributes if name in (known or ())]
        if both:
            raise InputError(
                f"sensitive: column {both[0]!r} is a quasi-identifier too. Name it in one of them only: "
                "quasi-identifiers are made coarser, sensitive attributes stay as they are."
            )
        if not isinstance(cells, bool):
            raise InputError(f"cells: expected True or False, got {brief(cells)}.")
        made = cls(
            limits,
            open_hierarchies(hierarchies),
            known,
            attributes,
            as_attackers(attackers) or {},
            _as_distances(distances, attributes),
            _as_weights(weights),
            _as_share(suppress),
            cells,
            _as_seconds(time_limit),
            as_identifiers(table, identifiers, pseudonymise, keep),
        )
        made._check_identifiers()
        if made.suppress and not made._smallest:
            raise InputError(
                "suppress: expected with a criterion on k against who knows the quasi-identifiers, such as "
                "'k>=5': rows "
                "of smaller classes are suppressed. Add one, or leave suppress= out."
            )
        if cells and not made.suppress:
            raise InputError(
                "cells: expected with suppress=, the share of the rows in which cells may be suppressed; got none."
            )
        return made

    def columns(self, names: Sequence[Hashable], labels: Sequence[Hashable]) -> list[Hashable] | None:
        """Return the columns that are read of a table with columns `names` and row labels, None for all.

        Raises ColumnNotFoundError for an identifier that is not there.
        """
        for name, done in self.identifiers.items():
            check_exist(ARGUMENTS[done], [name], [*names, *labels])
        if self.quasi_identifiers is not None or not self.identifiers:
            return _columns(self.limits, self.quasi_identifiers, self.sensitive, self.attackers)
        known = _known_by_attackers(self.limits, self.attackers)
        return [name for name in names if name not in self.identifiers or str(name) in known]

    def not_named(self, names: Sequence[Hashable], labels: Sequence[Hashable]) -> tuple[list[Hashable], list[Hashable]]:
        """Return the columns and row labels of a table of which no argument says what they are.

        Those among them that are made coarser come second.
        """
        named = {*self.sensitive, *self.identifiers, *(self.quasi_identifiers or ())}
        left = [name for name in names if name not in named]
        return [*left, *(name for name in labels if name not in named)], left if self.quasi_identifiers is None else []

    def _check_identifiers(self) -> None:
        """Raise InputError for an identifier that is to be something else too, or that an attacker is to know."""
        known = _known_by_attackers(self.limits, self.attackers)
        for name, done in self.identifiers.items():
            argument = ARGUMENTS[done]
            for others, what in ((self.quasi_identifiers or (), "a quasi-identifier"), (self.sensitive, "sensitive")):
                if name in others:
                    raise InputError(f"{argument}: column {name!r} is {what} too. Name it in one of them only.")
            if done == DROP and str(name) in known:
                raise InputError(
                    f"{known[str(name)]}: column {name!r} is an identifier, which the plan drops, so that nobody finds "
                    "it in the table. Leave it out of what the attacker knows, or name it in keep=."
                )

    @property
    def named_by(self) -> dict[Hashable, str]:
        """What named the columns that are read but for quasi-identifiers, as errors say it."""
        return _named_by(self.limits, self.quasi_identifiers, self.sensitive, self.attackers)

    def on(self, table: CountedTable) -> AskedOfTable:
        """The same of a table; raises InputError for what does not fit it."""
        names = table.names
        for name in self.sensitive:
            if name not in names:
                hint = did_you_mean(str(name), map(str, names))
                raise InputError(f"sensitive: no column {name!r} in the table.{hint}")
        known = self.quasi_identifiers
        if known is None:
            known = [name for name in names if name not in self.sensitive and name not in self.identifiers]
        if not known:
            raise InputError("quasi_identifiers: expected at least one column that is not sensitive, got none.")
        for name, said in named_by_attackers(self.attackers).items():
            check_exist(said, [name], names)
        for argument, mapping in (("hierarchies", self.given), ("weights", self.weights)):
            _check_named(argument, mapping, known, names)
        proposed = [name for name in known if name not in self.given]
        hierarchies = {
            name: self.given[name] if name in self.given else propose_hierarchy(table.columns[table.place(name)])
            for name in known
        }
        criteria = CriterionSet.of(self.limits, known, self.sensitive, self.attackers or None, self.distances, names)
        for quantity in (criterion.quantity for criterion in self.limits):
            for name in self.sensitive:
                if isinstance(quantity, OfModel) and quantity.sensitive and quantity.column in (None, str(name)):
                    check_values(table.columns[table.place(name)])
        return AskedOfTable(self, criteria, hierarchies, proposed)

    @property
    def _smallest(self) -> int:
        """The highest k of the criteria that have one, 0 without any."""
        return max([criterion.smallest_class or 0 for criterion in self.limits])


@dataclass(frozen=True)
class AskedOfTable:
    """What is asked of a table. criteria: checked. hierarchies: of each quasi-identifier; proposed: for which columns
    they were.
    """

    request: ProtectRequest
    criteria: CriterionSet
    hierarchies: Mapping[Hashable, Hierarchy]
    proposed: Sequence[Hashable]

    @property
    def cells(self) -> bool:
        """Whether single cells are to be suppressed, not rows."""
        return self.request.cells

    def weight(self, name: Hashable) -> float:
        """What a bit of a column is worth."""
        return self.request.weights.get(name, 1.0)

    def deadline(self) -> float:
        """Until when nodes are checked, as of `time.monotonic`."""
        limit = self.request.time_limit
        return math.inf if limit is None else time.monotonic() + limit

    def suppression(self, rows: int) -> Suppression | None:
        """What may be suppressed of so many rows."""
        most = math.floor(self.request.suppress * rows)
        return Suppression(self.request._smallest, most) if most else None

    def allows(self, suppressed: int, rows: int) -> bool:
        """Whether so many rows may be suppressed of all."""
        return suppressed <= math.floor(self.request.suppress * rows)

    def plan(self, levels: Mapping[Hashable, int], suppressed: int, cells: bool) -> Plan:
        """What is done to the table at a node; suppressed: how many rows are too few, cells: whether of these, and of
        others where it takes that, single cells are suppressed.
        """
        treatments: list[Treatment] = [Recode(name, level=level) for name, level in levels.items() if level]
        used = {name: self.hierarchies[name] for name, level in levels.items() if level}
        known = list(self.criteria.quasi_identifiers)
        if suppressed and cells:
            request = self.request
            treatments.append(
                Suppress(
                    columns=known,
                    criteria=[str(criterion) for criterion in request.limits],
                    quasi_identifiers=known,
                    sensitive=list(request.sensitive) or None,
                    attackers=request.attackers or None,
                    importance=dict(request.weights) or None,
                )
            )
        elif suppressed:
            treatments.append(SuppressRows(k=self.request._smallest, quasi_identifiers=known))
        return Plan(treatments, used)


def columns_read(
    criteria: Any,
    quasi_identifiers: Sequence[Hashable] | None,
    sensitive: Sequence[Hashable],
    attackers: Any,
    identifiers: Mapping[Hashable, str],
    names: Sequence[str],
) -> list[str] | None:
    """Return the columns of a file that are read, None for all; arguments as of `protect`. Raises InputError.

    identifiers: by column the argument that names it; they have to be there. names: of the columns of the file.
    """
    asked = read_criteria(criteria), quasi_identifiers, sensitive, as_attackers(attackers) or {}
    columns, named_by = _columns(*asked), {**identifiers, **_named_by(*asked)}
    if columns is not None:
        columns = list(dict.fromkeys([*columns, *identifiers]))
    return CountRequest(columns, argument="quasi_identifiers", named_by=named_by).pick(names)


def _columns(
    limits: Sequence[Criterion],
    quasi_identifiers: Sequence[Hashable] | None,
    sensitive: Sequence[Hashable],
    attackers: Mapping[str, Known],
) -> list[Hashable] | None:
    """The columns that are read; None: all."""
    if quasi_identifiers is None:
        return None
    return list(dict.fromkeys([*quasi_identifiers, *_named_by(limits, quasi_identifiers, sensitive, attackers)]))


def _named_by(
    limits: Sequence[Criterion],
    quasi_identifiers: Sequence[Hashable] | None,
    sensitive: Sequence[Hashable],
    attackers: Mapping[str, Known],
) -> dict[Hashable, str]:
    """What named columns, as errors say it, where those are read that are named; not of quasi-identifiers."""
    if quasi_identifiers is None:
        return {}
    scored = [*quasi_identifiers, *sensitive]
    said = {**named_by_attackers(attackers), **dict.fromkeys(sensitive, "sensitive")}
    for criterion in limits:
        if isinstance(criterion.known, tuple):
            for name in named_columns(criterion.known, scored):
                said.setdefault(name, f"criterion {str(criterion)!r}")
    return {name: argument for name, argument in said.items() if name not in quasi_identifiers}


def _known_by_attackers(limits: Sequence[Criterion], attackers: Mapping[str, Known]) -> dict[str, str]:
    """Return what names columns that attackers know, as errors say it, by the text of a column's name."""
    said = {str(name): argument for name, argument in named_by_attackers(attackers).items()}
    for criterion in limits:
        for name in criterion.known if isinstance(criterion.known, tuple) else ():
            said.setdefault(name, f"criterion {str(criterion)!r}")
    return said


def _check_named(
    argument: str, given: Mapping[Hashable, Any], known: Sequence[Hashable], names: Sequence[Hashable]
) -> None:
    """Raise InputError for what is given of a column that has none; of others that are not made coarser it may be."""
    for name in given:
        others = [str(one) for one in known if one not in given]
        if name not in names and (argument == "weights" or did_you_mean(str(name), others)):
            hint = did_you_mean(str(name), others)
            listed = ", ".join(map(repr, known))
            raise InputError(f"{argument}: column {name!r} is no quasi-identifier.{hint} There are: {listed}.")


def _as_weights(weights: Any) -> dict[Hashable, float]:
    if weights is None:
        return {}
    if not isinstance(weights, Mapping):
        raise InputError(f"weights: expected {{column: importance}}, got {brief(weights)}.")
    for name, value in weights.items():
        if not is_number(value) or not 0 < value < math.inf:
            raise InputError(f"weights: column {name!r}: expected a number above 0, got {brief(value)}.")
    return {name: float(value) for name, value in weights.items()}


def _as_share(suppress: Any) -> Fraction:
    """The share of rows as it was written: 0.29 of 100 rows are 29."""
    if not is_number(suppress) or not 0 <= suppress < 1:
        hint = " Divide percentages by 100." if is_number(suppress) and 1 <= suppress <= 100 else ""
        raise InputError(f"suppress: expected a share of the rows from 0 to below 1, got {brief(suppress)}.{hint}")
    return Fraction(repr(float(suppress)))


def _as_seconds(time_limit: Any) -> float | None:
    if time_limit is None:
        return None
    if not is_number(time_limit) or not time_limit > 0:
        raise InputError(f"time_limit: expected seconds above 0, or None for no limit; got {brief(time_limit)}.")
    return float(time_limit)


def _as_distances(distances: Any, sensitive: Sequence[Hashable]) -> Mapping[Any, Any]:
    from ..attack.hierarchy_files import read_named_files

    read = read_named_files("distances", distances) or {}
    if not isinstance(read, Mapping):
        raise InputError(f"distances: expected {{column: distance}}, got {brief(distances)}.")
    for name in read:
        if name not in sensitive:
            raise InputError(
                f"distances: column {name!r} is not sensitive: the values of quasi-identifiers change. Leave it out."
            )
    return read
