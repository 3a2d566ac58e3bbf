"""Criteria checked against the columns of a table, and their values in a counted table."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..attack.arguments import as_attackers
from ..attack.attackers import AnyKnown, Known, check_known
from ..disclosure.class_risks import risks_of
from ..disclosure.class_sizes import ClassSizes
from ..disclosure.request import NO_ATTRIBUTE
from ..disclosure.risk import check_size
from ..disclosure.risk_figures import NOTHING_GIVEN, RiskArguments
from ..engines.base import Engine
from ..errors import InputError, did_you_mean
from ..measures import Measure, find_measure
from ..utils.display import as_cell
from ..utils.exact_sums import ExactSum, sum_rows
from ..utils.percentiles import percentiles
from ..utils.validation import check_exist
from .counted_risk import counted_risks
from .counted_scores import class_sizes, known_columns, score_counted
from .counted_table import CountedTable
from .criterion import Criterion, read_criteria
from .quantities import ClassQuantity, ModelQuantity, RiskQuantity, ScoreQuantity

# A criterion that needs an argument, for messages.
EXAMPLES_BY_ARGUMENT = {
    "population": "population.k_map>=5",
    "household": "households.risk.highest<=0.2",
    "game": "games.prosecutor.attacked<=0",
    "population_size": "uniques.unique_share<=0.01",
}
# Overlapping classes: figures that need the number of classes are not defined.
_OVERLAPPING = ClassSizes({1: 1}, overlapping=True)


class CriterionValue(NamedTuple):
    """The value of a criterion in a table.

    value: the value of the limited figure, None if it is not defined. is_met: whether the value is safe. column: the
    worst column, if the criterion is on more than one column.
    """

    criterion: Criterion
    value: float | None
    is_met: bool
    column: Hashable = None

    @property
    def shortfall(self) -> float:
        """The amount by which the value breaks the limit, as a share of the limit or of the value; 0 if it is met."""
        if self.is_met:
            return 0.0
        value, limit = self.value, self.criterion.limit
        if value is None or math.isnan(value):
            return math.inf
        high, low = (value, limit) if self.criterion.at_most else (limit, value)
        return high / low - 1 if low > 0 else math.inf

    @property
    def said(self) -> str:
        """The criterion and its value in words: "'t<=0.2' is 0.31 in column 'ill'"."""
        where = "" if self.column is None else f" in column {self.column!r}"
        value = "not defined" if self.value is None or math.isnan(self.value) else as_cell(self.value)
        return f"{str(self.criterion)!r} is {value}{where}"


@dataclass(frozen=True)
class CriterionSet:
    """Criteria of a table; the arguments are as in `gpupif.protect`.

    quasi_identifiers: the columns that an attacker knows unless the criterion says otherwise. An attacker who knows any
        few columns knows any few of the quasi-identifiers.
    sensitive: the sensitive attributes, to which disclosure measures apply. Their cells are scored, as the cells of the
        quasi-identifiers are.
    attackers: the columns that each attacker knows, by name.
    distances: how far values are apart, by column, for ``t`` and ``emd``.
    missing: "category" or "wildcard", as in `gpupif.score`.
    given: the population, the sampling weights and whatever else figures of `gpupif.risk` need. With weights the shares
        of which disclosure measures and scores of cells are made are of weights.
    """

    criteria: Sequence[Criterion]
    quasi_identifiers: Sequence[Hashable]
    sensitive: Sequence[Hashable] = ()
    attackers: Mapping[str, Known] = field(default_factory=dict)
    distances: Mapping[Any, Any] = field(default_factory=dict)
    missing: str = "category"
    given: RiskArguments = NOTHING_GIVEN

    @classmethod
    def from_arguments(
        cls,
        criteria: Any,
        quasi_identifiers: Sequence[Hashable],
        sensitive: Sequence[Hashable] = (),
        attackers: Any = None,
        distances: Mapping[Any, Any] | None = None,
        names: Sequence[Hashable] | None = None,
        missing: str = "category",
        given: RiskArguments = NOTHING_GIVEN,
    ) -> CriterionSet:
        """Check criteria against the columns of a table.

        names: all columns of the table, any of which an attacker may know; default: the scored columns. Raises
        InputError if a criterion cannot be read, or an attacker or a column does not exist.
        """
        made = cls(
            read_criteria(criteria),
            list(quasi_identifiers),
            list(sensitive),
            as_attackers(attackers) or {},
            distances or {},
            # Missing values were refused when the table was counted.
            "category" if missing == "error" else missing,
            given,
        )
        made._check_given()
        for criterion in made.criteria:
            made._check(criterion, made.scored if names is None else names)
        return made

    @property
    def scored(self) -> list[Hashable]:
        """The columns whose cells are scored."""
        return [*self.quasi_identifiers, *self.sensitive]

    @property
    def columns(self) -> list[Hashable]:
        """The columns that the criteria need: scored columns and further columns that attackers know."""
        names = [name for known in self._known_by_criterion.values() for name in known_columns(known)]
        return list(dict.fromkeys([*self.scored, *names, *self.given.columns]))

    def read_as(self, missing: str) -> CriterionSet:
        """Return this set for a table with suppressed cells, read as "category" or "wildcard".

        Figures that are not defined then are left out: estimated uniques need classes that do not overlap.
        """
        given = self.given
        if missing == "wildcard":
            given = replace(given, sampling_fraction=None, population_size=None)
        defined = [
            own
            for own in self.criteria
            if not isinstance(own.quantity, RiskQuantity) or own.quantity.figure.needs <= given.given
        ]
        return replace(self, criteria=defined, missing=missing, given=given)

    def with_criteria(self, criteria: Sequence[Criterion]) -> CriterionSet:
        """Return this set with other criteria."""
        return replace(self, criteria=criteria)

    def only_improves(self, criterion: Criterion) -> bool:
        """Return whether every table that meets a criterion still meets it with coarser values of any column."""
        quantity = criterion.quantity
        if isinstance(quantity, RiskQuantity):
            return quantity.figure.only_improves(self.given)
        if isinstance(quantity, ScoreQuantity) and self.given.weights is not None:
            # The mean is over rows, the shares are of people. A row of weight 0 may be in a class of nobody.
            improves = quantity.only_improves(True) and not self.given.zero_weights
            return improves and (quantity.is_of_size or self.missing != "wildcard")
        if self.missing == "wildcard" and not criterion.is_of_sizes:
            # Coarser values make more rows match a row. Of distributions in classes that overlap nothing is proved.
            return isinstance(quantity, ScoreQuantity) and quantity.is_of_size and quantity.only_improves(True)
        return quantity.only_improves(isinstance(self._known_by_criterion[criterion], AnyKnown))

    def known(self, criterion: Criterion) -> Sequence[Hashable] | AnyKnown:
        """Return the columns that the attacker of a criterion knows, or any few of some columns."""
        return self._known_by_criterion[criterion]

    def learnt(self, known: Sequence[Hashable] | AnyKnown) -> list[Hashable]:
        """Return the sensitive attributes that an attacker does not know already."""
        return [name for name in self.sensitive if isinstance(known, AnyKnown) or name not in known]

    def measure(self, table: CountedTable, engine: Engine) -> list[CriterionValue]:
        """Return the value of each criterion in a table, in their order."""
        values: dict[Criterion, CriterionValue] = {}
        for known, criteria in self._measured_together.values():
            values |= self._values(known, criteria, table, engine)
        return [values[criterion] for criterion in self.criteria]

    @cached_property
    def _known_by_criterion(self) -> dict[Criterion, Sequence[Hashable] | AnyKnown]:
        return {criterion: self._find_known(criterion) for criterion in self.criteria}

    def _find_known(self, criterion: Criterion) -> Sequence[Hashable] | AnyKnown:
        pool = list(self.quasi_identifiers)
        known: Known = None
        if criterion.attacker is not None:
            if criterion.attacker not in self.attackers:
                there = ", ".join(map(repr, self.attackers)) or "none"
                hint = did_you_mean(criterion.attacker, self.attackers)
                raise InputError(
                    f"criterion {str(criterion)!r}: no attacker {criterion.attacker!r}.{hint} There are: {there}. "
                    "Say what each knows with attackers=, or write known=A,B: before the figure."
                )
            known = self.attackers[criterion.attacker]
            if known is None and not criterion.of_classes:
                # As in `gpupif.score`, an attacker without a list knows all scored columns.
                known = self.scored
        elif isinstance(criterion.known, int):
            known = AnyKnown(criterion.known)
        elif criterion.known is not None:
            known = named_columns(criterion.known, self.scored)
        if isinstance(known, AnyKnown):
            return known if known.pool is not None else replace(known, among=pool)
        return pool if known is None else list(known)

    def _check_given(self) -> None:
        """Raise InputError for an argument of `gpupif.risk` that is wrong, or that no criterion needs.

        Weights are never refused: numbers of rows, such as k, count each row once.
        """
        size = {"sampling_fraction": self.given.sampling_fraction, "population": self.given.population_size}
        check_size(size, self.given.weights, self.missing)
        for name, argument in self.given.columns.items():
            if name in self.scored:
                raise InputError(f"{argument}: column {name!r} has another role too. Name it in one of them only.")
        quantities = [criterion.quantity for criterion in self.criteria]
        needed = {name for own in quantities if isinstance(own, RiskQuantity) for name in own.figure.needs}
        needed.add("weights")
        for name in sorted(self.given.given - needed):
            raise InputError(
                f"{name}: no criterion needs it, so it would be ignored. Require a figure that it gives, such as "
                f"{EXAMPLES_BY_ARGUMENT[name]!r}, or leave it out."
            )

    def _check(self, criterion: Criterion, names: Sequence[Hashable]) -> None:
        """Raise InputError if a criterion names something that is not there. names: the columns of the table."""
        about = f"criterion {str(criterion)!r}"
        quantity, known = criterion.quantity, self._known_by_criterion[criterion]
        check_exist(
            about if criterion.attacker is None else f"attackers: {criterion.attacker!r}", known_columns(known), names
        )
        for name, argument in self.given.columns.items():
            if name in known_columns(known):
                raise InputError(
                    f"{about}: the attacker knows column {name!r}, which {argument}= names too. Leave it out of one of "
                    "them."
                )
        if isinstance(quantity, RiskQuantity):
            for name in sorted(quantity.figure.needs - self.given.given):
                command = " (--adversary-gain 300, say)" if name == "game" else ""
                raise InputError(f"{about}: it needs {name}={command}; got none.")
            if isinstance(known, AnyKnown) or not known:
                raise InputError(f"{about}: expected an attacker who knows a list of columns; got none, or any few.")
        if isinstance(quantity, ModelQuantity) and quantity.sensitive:
            if not self.sensitive:
                raise InputError(
                    f"{about}: {quantity.model.name} is of a sensitive attribute: name one with sensitive=."
                )
            self._check_column(about, quantity.column, self.sensitive, "sensitive attribute")
            learnt = self.learnt(known)
            if not learnt or quantity.column not in (None, *map(str, learnt)):
                raise InputError(
                    f"{about}: the attacker knows column {quantity.column or str(self.sensitive[0])!r} and has nothing "
                    "left to learn of it. Leave it out of what the attacker knows."
                )
        elif isinstance(quantity, ScoreQuantity):
            self._check_column(about, quantity.column, self.scored, "column that is scored")
        elif (
            isinstance(quantity, ClassQuantity)
            and isinstance(known, AnyKnown)
            and quantity.figure.find(risks_of(_OVERLAPPING)) is None
        ):
            raise InputError(
                f"{about}: {quantity.figure.name} is not defined if an attacker knows any few columns, since "
                "classes overlap. Limit another figure, such as k."
            )
        if isinstance(known, AnyKnown):
            scored: list[Hashable] = [NO_ATTRIBUTE]
            if isinstance(quantity, ScoreQuantity):
                scored = self.scored
            elif isinstance(quantity, ModelQuantity) and quantity.sensitive:
                scored = [name for name in self.sensitive if quantity.column in (None, str(name))]
            pool = list(known.pool or ()) if known.known else scored
            others = min(len(pool) - (name in pool) for name in scored)
            if isinstance(criterion.known, int) and criterion.known > others:
                raise InputError(
                    f"{about}: known: expected at most {others}, the number of columns that may be known, "
                    f"got {criterion.known}. Give a lower number, or more quasi-identifiers."
                )
            check_known(about, known, scored, pool)

    @staticmethod
    def _check_column(about: str, column: str | None, names: Sequence[Hashable], what: str) -> None:
        texts = list(map(str, names))
        if column is not None and column not in texts:
            hint = did_you_mean(column, texts)
            raise InputError(f"{about}: {column!r} is no {what}.{hint} There are: {', '.join(map(repr, texts))}.")

    @cached_property
    def _measured_together(self) -> dict[Any, tuple[Sequence[Hashable] | AnyKnown, list[Criterion]]]:
        """Return the criteria that are measured together: of one kind, against one attacker."""
        together: dict[Any, tuple[Sequence[Hashable] | AnyKnown, list[Criterion]]] = {}
        for criterion in self.criteria:
            known = self._known_by_criterion[criterion]
            key = (_kind(criterion), known if isinstance(known, AnyKnown) else tuple(known))
            together.setdefault(key, (known, []))[1].append(criterion)
        return together

    def _values(
        self, known: Sequence[Hashable] | AnyKnown, criteria: Sequence[Criterion], table: CountedTable, engine: Engine
    ) -> dict[Criterion, CriterionValue]:
        """Return the values of criteria of one kind against one attacker."""
        kind = _kind(criteria[0])
        if kind == "classes":
            sizes = class_sizes(table, known, engine, self.missing)
            return {criterion: value_of_classes(criterion, sizes) for criterion in criteria}
        if kind == "risk":
            assert not isinstance(known, AnyKnown)
            return self._values_of_risk(known, criteria, table, engine)
        columns = self.learnt(known) if kind == "models" else self.scored
        return self._values_of_cells(known, criteria, table, engine, columns)

    def _values_of_risk(
        self, known: Sequence[Hashable], criteria: Sequence[Criterion], table: CountedTable, engine: Engine
    ) -> dict[Criterion, CriterionValue]:
        """Return the values of figures of `gpupif.risk`."""
        quantities = [criterion.quantity for criterion in criteria if isinstance(criterion.quantity, RiskQuantity)]
        limits = [quantity.arguments for quantity in quantities]
        risks = counted_risks(table, known, self.given, engine, self.missing, limits)
        values = [quantity.figure.find(found) for quantity, found in zip(quantities, risks, strict=True)]
        return {own: CriterionValue(own, value, own.is_met(value)) for own, value in zip(criteria, values, strict=True)}

    def _values_of_cells(
        self,
        known: Sequence[Hashable] | AnyKnown,
        criteria: Sequence[Criterion],
        table: CountedTable,
        engine: Engine,
        columns: Sequence[Hashable],
    ) -> dict[Criterion, CriterionValue]:
        """Return the values of criteria on the cells of columns."""
        quantities = [criterion.quantity for criterion in criteria]
        of_rows = any(isinstance(quantity, ScoreQuantity) and quantity.measure is None for quantity in quantities)
        if not of_rows:
            named = {quantity.column for quantity in quantities}
            columns = columns if None in named else [name for name in columns if str(name) in named]
        matching = self.missing == "wildcard"
        measures = list(dict.fromkeys(_measure_of(quantity, matching) for quantity in quantities))
        only_extremes = not of_rows and all(
            isinstance(quantity, ModelQuantity) or (isinstance(quantity, ScoreQuantity) and quantity.is_extreme)
            for quantity in quantities
        )
        job, scores = score_counted(
            table,
            known,
            columns,
            measures,
            self.distances,
            engine,
            only_extremes,
            self.missing,
            self.given.weights,
            counted=_kind(criteria[0]) == "models",
        )
        values = {}
        for criterion in criteria:
            quantity = criterion.quantity
            if isinstance(quantity, ScoreQuantity) and quantity.measure is None:
                gains = [own.scores for own in scores["cig"]]
                values[criterion] = worst_of(criterion, {None: _gain(gains, table.multiplicities, quantity.percentile)})
                continue
            by_column: dict[Hashable, float] = {}
            for slot, name in enumerate(columns):
                if quantity.column is not None and str(name) != quantity.column:
                    continue
                own = scores[_measure_of(quantity, matching).name][slot]
                if isinstance(quantity, ModelQuantity):
                    axis = None if job.axes is None else job.axes[job.scored_columns[slot]]
                    # A class of missing values, which match every value, has no number of values.
                    extreme = own.extreme(quantity.model.highest, zeros=quantity.model.name != "distinct_l")
                    by_column[name] = quantity.model.finish(extreme, axis)
                else:
                    assert isinstance(quantity, ScoreQuantity)
                    by_column[name] = (
                        own.extreme(quantity.percentile == 100)
                        if quantity.is_extreme
                        else _figure(own.scores, table.multiplicities, quantity.percentile)
                    )
            values[criterion] = worst_of(criterion, by_column)
        return values


def check_attackers_used(attackers: Mapping[str, Known], criteria: Sequence[Criterion]) -> None:
    """Raise InputError for an attacker whom no criterion names."""
    idle = attackers.keys() - {criterion.attacker for criterion in criteria}
    if idle:
        raise InputError(
            f"attackers: {min(idle)!r}: no criterion is on this attacker, who would be ignored. Write the name before "
            f"a criterion, such as '{min(idle)}: k>=3', or leave the attacker out."
        )


def named_by_attackers(attackers: Mapping[str, Known], others: Sequence[Hashable] = ()) -> dict[Hashable, str]:
    """Return the columns that attackers know, each with the argument that names it first, for errors.

    others: columns that are left out.
    """
    argument_of: dict[Hashable, str] = {}
    for attacker, known in attackers.items():
        for name in (known.among or ()) if isinstance(known, AnyKnown) else (known or ()):
            if name not in others:
                argument_of.setdefault(name, f"attackers: {attacker!r}")
    return argument_of


def named_columns(texts: Sequence[str], names: Sequence[Hashable]) -> list[Hashable]:
    """Return the columns that a criterion names by text. A text that names no column is returned as it is."""
    by_text = {str(name): name for name in names}
    return [by_text.get(text, text) for text in texts]


def _kind(criterion: Criterion) -> str:
    quantity = criterion.quantity
    if isinstance(quantity, ModelQuantity):
        return "models" if quantity.sensitive else "classes"
    if isinstance(quantity, RiskQuantity):
        return "risk"
    return "classes" if isinstance(quantity, ClassQuantity) else "cells"


def _measure_of(quantity: Any, matching: bool) -> Measure:
    """Return the measure of the cells from which a quantity is computed.

    matching: whether missing values match every value.
    """
    if isinstance(quantity, ModelQuantity):
        return find_measure(quantity.model.measure(quantity.l_values, matching))
    return quantity.measure or find_measure("cig")


def _figure(scores: Any, multiplicities: npt.NDArray[np.int64], percentile: float | None) -> float:
    """Return the mean (percentile None) or a percentile of the scores of distinct rows. multiplicities: of the rows."""
    if percentile is None:
        return ExactSum.from_numbers(np.asarray(scores), multiplicities).mean
    return percentiles(lambda: [(scores, multiplicities)], [percentile])[0]


def _gain(scores: Sequence[Any], multiplicities: npt.NDArray[np.int64], percentile: float | None) -> float:
    """Return the mean (percentile None) or a percentile of the gains of rows. scores: by column."""
    if percentile is None:
        return math.fsum(_figure(own, multiplicities, None) for own in scores)
    sums = sum_rows(scores)
    if percentile in (0, 100):
        return float(sums.max() if percentile else sums.min())
    return _figure(sums, multiplicities, percentile)


def value_of_classes(criterion: Criterion, sizes: ClassSizes) -> CriterionValue:
    """Return the value of a criterion that follows from the sizes of classes alone."""
    quantity = criterion.quantity
    if isinstance(quantity, ModelQuantity):
        value: float | None = sizes.smallest
    else:
        assert isinstance(quantity, ClassQuantity)
        value = quantity.figure.find(risks_of(sizes, quantity.k, quantity.threshold))
    return CriterionValue(criterion, value, criterion.is_met(value))


def worst_of(criterion: Criterion, by_column: Mapping[Hashable, float]) -> CriterionValue:
    """Return the worst value over columns. If values are equal, the first column is named."""
    known = {name: value for name, value in by_column.items() if not math.isnan(value)}
    if not known:
        return CriterionValue(criterion, None, False)
    column = (max if criterion.at_most else min)(known, key=lambda name: known[name])
    return CriterionValue(criterion, known[column], criterion.is_met(known[column]), column)
