"""Treatments that suppress cells or rows, by a condition on their scores or until criteria hold."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from ...attack.arguments import as_attackers
from ...attack.hierarchy_files import TextOrder, TextTree, read_named_files
from ...criteria.class_criteria import ORIGINAL, RELEASED
from ...criteria.criterion import Criterion, read_criteria
from ...criteria.criterion_set import CriterionSet, check_attackers_used, named_by_attackers, named_columns
from ...criteria.quantities import ModelQuantity, RiskQuantity
from ...disclosure.attack_game import Game
from ...disclosure.risk_figures import RiskArguments
from ...errors import InputError, did_you_mean
from ...utils.validation import check_exist
from ..coded_columns import CodedColumn
from ..field_checks import not_empty, positive, whole
from ..steps import Chunk, RowFacts, Step
from ..treatment import Tools, TreatedTable, Treatment
from .class_suppression import with_missing
from .measured_criteria import suppress_to_criteria
from .scored_condition import cells_where, check_condition, rows_of_failing_classes

WAYS = ("where", "k", "require")
# The arguments of `gpupif.risk` that parts of a plan may have.
ARGUMENTS_OF_RISK = ("weights", "household", "game", "sampling_fraction", "population_size")
# The arguments of `Suppress` that are only allowed with some ways, by way.
ONLY_WITH: Mapping[str, Sequence[str]] = {
    "where": ("known", "attackers", "weights"),
    "k": ("quasi_identifiers", "importance"),
    "require": (
        *("quasi_identifiers", "importance", "sensitive", "distances", "attackers"),
        *("weights", "household", "game", "population_size"),
    ),
}
# The bytes of memory for each row, and for each cell that criteria need, while cells are suppressed. Measured.
ROW_BYTES, COLUMN_BYTES = 64, 8


@dataclass(frozen=True)
class Suppress(Treatment):
    """Suppress cells, which makes them missing, by a condition on their scores or until criteria hold.

    Give exactly one of ``where``, ``k`` and ``require``. Cells that are missing already stay missing.

    Parameters
    ----------
    columns:
        Names of the columns whose cells may be suppressed.
    where:
        A condition on any measures, see `Scores.cells`: ``"csf > 0.9"``, ``"cig >= 3 and cohort_size < 5"``. The table
        is scored after the treatments so far, and all cells for which the condition holds are suppressed at once.
        Suppressing a cell changes the scores of other cells: to reach a limit, use ``require``.
    k:
        The fewest rows of an equivalence class: ``k=5`` is short for ``require=["k>=5"]``.
    require:
        A criterion or a list of criteria, see `gpupif.protect`: ``"k>=5"``, ``"known=2: k>=3"``, ``"max csf<=0.9"``,
        ``"uniques<=0"``. Cells that break a criterion are suppressed in rounds. Then cells are restored until no
        single cell can be restored. Of equal rows, only as many as needed lose a cell, the last rows first.
    quasi_identifiers:
        With k and require: names of the columns that the attacker knows, and whose cells are scored. Default: the names
        in ``columns``. A quasi-identifier that is not in ``columns`` is never suppressed, and only rows that agree on
        it are grouped (sdcMicro's strata).
    sensitive:
        With require: names of sensitive attributes, for ``distinct_l``, ``t`` and others.
    known:
        With where: the columns that the attacker knows, see `gpupif.score`. Default: all columns of the table except
        the column of weights. The number 2 means any two of these columns.
    attackers:
        With where and require: known columns by the name of each attacker, see `gpupif.score`. Criteria name attackers.
    weights:
        With where and require: the name of the column of sampling weights, see `gpupif.score`. With require, shares of
        values are of weights, and ``k`` counts rows.
    household, game, population_size:
        With require: what figures of `gpupif.risk` need, such as ``"households.risk.highest<=0.2"``: the column of
        households; the amounts of a `gpupif.models.Game` by name; the number of people in the population. Figures that
        need a population itself suppress no cells.
    missing:
        The reading of missing values, of original ones, too: "category" is a value of its own, "wildcard" matches any
        value. Default with where: "category". Default with k and require: criteria must hold under both readings.
        Estimated population uniques have no second reading.
        "wildcard" alone suppresses fewer cells (sdcMicro's ``alpha=1``), but an attacker may tell rows apart by their
        missing values. Its time grows with the square of the number of rows.
    importance:
        With k and require: ``{column: importance}``, numbers above 0. Less important columns are suppressed first.
        Default: 1 for each column.
    distances:
        With require: how far values are apart, for ``t`` and ``emd``, as in `SuppressRows`.

    Raises
    ------
    InputError
        None or several of where, k and require are given. A condition, criterion or measure is unknown. A column does
        not exist. An attacker is in no criterion. An importance is not above 0. A criterion cannot be reached; the
        message names the columns that prevent it. With k and require, the table does not fit into memory.

    Notes
    -----
    Ties are resolved by importance, then by the order of columns and rows. The result does not depend on the kind of
    table or the number of threads. The number of suppressed cells need not be the smallest: finding that is
    NP-hard (Meyerson & Williams 2004, On the complexity of optimal k-anonymity). Local suppression: Templ, Kowarik &
    Meindl, sdcMicro (2015), section 3.2.2.

    """

    do: ClassVar[str] = "suppress"

    columns: Annotated[Sequence[Hashable], not_empty]
    where: str | None = None
    k: Annotated[int | None, whole("rows")] = None
    require: Sequence[str] | str | None = None
    quasi_identifiers: Annotated[Sequence[Hashable] | None, not_empty] = None
    sensitive: Annotated[Sequence[Hashable] | None, not_empty] = None
    known: Any = None
    attackers: Mapping[str, Any] | None = None
    weights: Hashable | None = None
    household: Hashable | None = None
    game: Mapping[str, float] | None = None
    population_size: Annotated[int | None, whole("people")] = None
    missing: Literal["category", "wildcard"] | None = None
    importance: Mapping[Hashable, float] | None = None
    distances: Mapping[Hashable, Any] | None = None

    @property
    def keeps_numbers(self) -> bool:
        return True

    def check(self) -> None:
        super().check()
        way = check_way(self, WAYS, ONLY_WITH)
        if way == "where":
            check_condition(self.where, self.attackers)
        elif way == "require":
            check_attackers_used(as_attackers(self.attackers) or {}, read_criteria(self.require))
            check_learnt(self.require, self.sensitive)
            refuse_population(read_criteria(self.require), "require")
            risk_arguments(self)
        check_exist("distances", self.distances or {}, self.named(), "columns=, quasi_identifiers= and sensitive=")
        check_exist("importance", self.importance or {}, self.columns, "columns=")
        for name, importance in (self.importance or {}).items():
            positive(f"importance: column {name!r}", importance)

    def named(self) -> Sequence[Hashable]:
        """Return the columns that the table must have: with require all that the criteria need."""
        return columns_of_criteria(self, [*self.columns, *(self.quasi_identifiers or ())])

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        names = self.columns
        if self.where is not None:
            facts = cells_where(
                self.where, table, names, self.known, self.attackers, self.weights, self.missing or "category"
            )
            return SuppressStep(facts, writes=names)
        known = names if self.quasi_identifiers is None else self.quasi_identifiers
        criteria = criteria_of(self, known, table)
        needed = [name for name in table.names if name in {*criteria.columns, *names}]
        importance = {needed.index(name): float((self.importance or {}).get(name, 1)) for name in names}
        codes = table.codes(needed, ROW_BYTES + COLUMN_BYTES * len(needed))
        result, values = suppress_to_criteria(codes, needed, criteria, importance, self.missing)
        facts = table.facts_of({str(place): result.cells[needed.index(name)] for place, name in enumerate(names)})
        reached: dict[str, dict[str, float | None]] = {}
        for reading, own in values.items():
            for at in own:
                reached.setdefault(str(at.criterion), {})[reading] = None if at.value is None else float(at.value)
        counted = {
            "rounds": result.rounds,
            "restored": result.restored,
            "rows": int(result.cells.any(axis=0).sum()),
        }
        record = {**counted, "criteria": reached}
        return SuppressStep(facts, writes=names, record=record, revealing=list(counted))


def refuse_population(criteria: Iterable[Criterion], argument: str) -> None:
    """Raise InputError for a criterion on a population, by which no cells are suppressed. argument: for messages."""
    for criterion in criteria:
        if isinstance(criterion.quantity, RiskQuantity) and "population" in criterion.quantity.figure.needs:
            raise InputError(
                f"{argument}: cells are not suppressed by criterion {str(criterion)!r}: a plan would have to hold the "
                "population, to treat any table by it. Suppress whole rows, or leave the criterion out."
            )


def check_way(treatment: Any, ways: Sequence[str], only: Mapping[str, Sequence[str]]) -> str:
    """Return the single argument of `ways` that is given: the way in which a treatment suppresses.

    only: by way, the arguments that are allowed with this way, and not with every way. Raises InputError if none or
    several of `ways` are given, and for an argument that is not allowed.
    """
    given = [way for way in ways if getattr(treatment, way) is not None]
    listed = f"{', '.join(ways[:-1])} or {ways[-1]}"
    if len(given) != 1:
        raise InputError(f"{treatment.do}: expected one of {listed}, got {' and '.join(given) or 'none'}.")
    (way,) = given
    for argument in dict.fromkeys(argument for allowed in only.values() for argument in allowed):
        if argument not in only[way] and getattr(treatment, argument) is not None:
            others = " or ".join(other for other, allowed in only.items() if argument in allowed)
            raise InputError(f"{treatment.do}: {argument} goes with {others}, and not with {way}. Leave it out.")
    return way


def check_of_classes(require: Any, attackers: Mapping[str, Any] | None) -> None:
    """Raise InputError for a criterion that is not on each equivalence class, and for an attacker in no criterion."""
    check_attackers_used(as_attackers(attackers) or {}, read_criteria(require))
    for criterion in read_criteria(require):
        if not criterion.of_each_class:
            raise InputError(
                f"require: criterion {str(criterion)!r} is not on each equivalence class. Expected criteria such as "
                "'k>=5', 'distinct_l>=2' or 't<=0.3'."
            )


def check_learnt(require: Any, sensitive: Sequence[Hashable] | None) -> None:
    """Raise InputError for a criterion of a sensitive attribute if no column is one. sensitive: those named."""
    for criterion in read_criteria(require) if require and not sensitive else ():
        quantity = criterion.quantity
        if isinstance(quantity, ModelQuantity) and quantity.sensitive:
            raise InputError(
                f"require: {str(criterion)!r} is of a sensitive attribute, and no column is named as one. Name it, "
                "such as sensitive = ['disease']."
            )


def columns_of_criteria(treatment: Any, columns: Iterable[Hashable]) -> list[Hashable]:
    """Return `columns` and the columns that the criteria of a treatment need."""
    names = [*columns, *(treatment.sensitive or ())]
    if treatment.require is not None:
        for criterion in read_criteria(treatment.require):
            if isinstance(criterion.known, tuple):
                names += named_columns(criterion.known, names)
        names += named_by_attackers(as_attackers(treatment.attackers) or {})
        columns_of_rows = (treatment.weights, getattr(treatment, "household", None))
        names += [name for name in columns_of_rows if name is not None]
    return list(dict.fromkeys(names))


def criteria_of(treatment: Any, known: Sequence[Hashable], table: TreatedTable) -> CriterionSet:
    """Return the criteria of a treatment that suppresses or recodes rows or cells. known: the quasi-identifiers."""
    return CriterionSet.from_arguments(
        [f"k>={treatment.k}"] if treatment.require is None else treatment.require,
        known,
        treatment.sensitive or [],
        treatment.attackers,
        read_distances(treatment.distances),
        names=table.names,
        missing=getattr(treatment, "missing", None) or "category",
        given=risk_arguments(treatment),
    )


def risk_arguments(part: Any, needed: Collection[str] = ARGUMENTS_OF_RISK) -> RiskArguments:
    """Return the arguments of `gpupif.risk` in a part of a plan, as far as it has them. needed: their names."""
    given: dict[str, Any] = {name: getattr(part, name, None) for name in ARGUMENTS_OF_RISK}
    amounts = [own.name for own in fields(Game)]
    for name in given["game"] or ():
        if name not in amounts:
            hint = did_you_mean(name, amounts)
            raise InputError(f"game: there is no amount {name!r}.{hint} Expected some of {', '.join(amounts)}.")
    if given["game"] is not None:
        given["game"] = Game(**given["game"])
    return RiskArguments(**{name: own for name, own in given.items() if name in needed})


def read_distances(given: Mapping[Hashable, Any] | None) -> dict[Hashable, Any]:
    """Return distances by column, read from their files. A text denotes the value that has this text.

    A plan in a document has texts for values such as dates, and for all keys of hierarchies.
    """
    distances = dict(read_named_files("distances", given or {}))
    for name, own in distances.items():
        if isinstance(own, list | tuple | Mapping) and not isinstance(own, TextOrder | TextTree):
            distances[name] = TextTree(own) if isinstance(own, Mapping) else TextOrder(own)
    return distances


@dataclass(frozen=True)
class SuppressStep(Step):
    """The prepared `Suppress`.

    facts: booleans (rows,) by position of a column, as text: whether cells become missing.
    """

    facts: RowFacts

    def apply(self, chunk: Chunk) -> None:
        facts = self.facts.read(chunk)
        for place, name in enumerate(self.writes):
            suppress_in(chunk, name, facts[str(place)])


def suppress_in(chunk: Chunk, name: Hashable, rows: Any) -> None:
    """Make the cells of a column missing in some rows of a chunk. rows: booleans (rows,)."""
    if np.any(rows):
        column = chunk[name]
        chunk[name] = CodedColumn(with_missing(column.codes, rows, len(column.labels)), column.labels)


ONLY_WITH_OF_ROWS: Mapping[str, Sequence[str]] = {
    "where": ("columns", "known", "attackers", "weights", "missing"),
    "k": ("missing",),
    "require": ("sensitive", "distances", "attackers", "weights", "missing", "reference"),
}
WAYS_OF_ROWS = ("where", "k", "require")


@dataclass(frozen=True)
class SuppressRows(Treatment):
    """Remove rows, or all their quasi-identifiers, by a condition on scores or if their class breaks a criterion.

    Give exactly one of ``where``, ``k`` and ``require``.

    Parameters
    ----------
    where:
        A condition on measures of rows (``"class_size < 5"``) or of cells (``"csf > 0.9"``), see `Suppress`. A row is
        suppressed if the condition holds for any of its cells in ``columns``.
    k:
        The fewest rows of an equivalence class: rows of smaller classes are suppressed. Every class that is left has at
        least k rows.
    require:
        A criterion or a list of criteria on each equivalence class, see `gpupif.protect`: ``"k>=5"``,
        ``"distinct_l>=2"``, ``"entropy_l(disease)>=2"``, ``"t<=0.3"``, ``"uniques<=0"``. Rows of classes that break any
        of them are suppressed, until the rows that are left meet all of them. Criteria may name an attacker:
        ``"known=age,sex: k>=3"``, ``"known=2: k>=3"`` (any two quasi-identifiers), ``"neighbour: k>=3"``.
        Rows are then suppressed attacker by attacker, the attacker who knows all quasi-identifiers first. The classes
        of the rows that are left are judged again, until no row fails. For k and ``distinct_l`` no larger set of rows
        can stay.
    quasi_identifiers:
        Names of the columns that the attacker knows. Needed with k and require, and with ``remove=False``. Default with
        where: all columns of the table except the column of weights.
    sensitive:
        With require: names of sensitive attributes, for ``distinct_l``, ``t`` and others.
    distances:
        With require: how far values of sensitive attributes are apart, for ``t``, as in `gpupif.score`. Default:
        "ordered" for numbers, dates, times and booleans, "nominal" for all other values, ordered categories too.
    columns:
        With where: names of the columns whose cells are scored. Default: the quasi-identifiers.
    attackers:
        With where and require: known columns by the name of each attacker, as in `Suppress`.
    weights:
        With where and require: the column of sampling weights. With require, shares in classes are of weights, and
        ``k`` counts rows. A row of weight 0 makes no share, and is suppressed if any of its classes is.
    known:
        With where: see `Suppress`. ``known`` replaces the quasi-identifiers as the columns that the attacker knows, for
        example with any two of them.
    missing:
        The reading of missing values. "category": a missing value is a value of its own. "wildcard": it matches every
        value. The class of a row is then all rows that match it, and shares are of known sensitive values. A row that
        is suppressed matches no other row any more: rows are judged again until no row fails. Default "category". What
        holds for ``k`` under "category" also holds under "wildcard".
    reference:
        With require: the rows with which ``t``, ``basic_beta``, ``enhanced_beta`` and ``delta`` compare each class.
        "released": the rows that are left. The worse half of the failing classes goes first, then the others are judged
        again. "original": all rows, suppressed rows among them, as in ARX; the rows that are left may break the limit.
        Default None: "released"; without ``remove`` "original", since all rows are released.
    remove:
        True: the rows are removed. False: the rows stay, and all their quasi-identifiers become missing, as in ARX. The
        number of rows and all other columns stay. The suppressed rows form a class, which may be small. An attacker
        finds a person there if no other class can hold the person. Default True.

    Raises
    ------
    InputError
        None or several of where, k and require are given. A criterion is not on each class. Quasi-identifiers are
        needed and not given. A condition is wrong. A column does not exist. Criteria are of several attackers, of any
        few known columns or of weights, compare classes with the rows that are left, or missing values match every
        value, and the table does not fit into memory as codes. A column of weights is known or sensitive.

    Notes
    -----
    Prasser, Kohlmayer, Lautenschläger & Kuhn 2014, ARX: suppression of records in equivalence classes that do not
    meet the criteria.

    """

    do: ClassVar[str] = "suppress_rows"

    where: str | None = None
    k: Annotated[int | None, whole("rows")] = None
    require: Sequence[str] | str | None = None
    quasi_identifiers: Annotated[Sequence[Hashable] | None, not_empty] = None
    sensitive: Annotated[Sequence[Hashable] | None, not_empty] = None
    distances: Mapping[Hashable, Any] | None = None
    columns: Annotated[Sequence[Hashable] | None, not_empty] = None
    known: Any = None
    attackers: Mapping[str, Any] | None = None
    weights: Hashable | None = None
    missing: Literal["category", "wildcard"] | None = None
    reference: Literal["released", "original"] | None = None
    remove: bool = True

    def check(self) -> None:
        super().check()
        way = check_way(self, WAYS_OF_ROWS, ONLY_WITH_OF_ROWS)
        if self.quasi_identifiers is None and (way != "where" or not self.remove):
            what = "become missing" if way == "where" else "classes are of"
            raise InputError(f"quasi_identifiers: expected the columns that {what}, got none.")
        check_exist("distances", self.distances or {}, self.sensitive or (), "sensitive=")
        if way == "where":
            check_condition(self.where, self.attackers)
        if way == "require":
            check_of_classes(self.require, self.attackers)
            check_learnt(self.require, self.sensitive)

    def named(self) -> Sequence[Hashable]:
        """Return the columns that the table must have: with require all that the criteria need."""
        return columns_of_criteria(self, [*(self.quasi_identifiers or ()), *(self.columns or ())])

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        known = self.quasi_identifiers
        if self.where is None:
            assert known is not None
            reference = self.reference or (RELEASED if self.remove else ORIGINAL)
            facts = rows_of_failing_classes(criteria_of(self, known, table), table, reference)
        else:
            everything = [name for name in table.names if name != self.weights]
            columns = (known or everything) if self.columns is None else self.columns
            theirs = known if self.known is None and self.attackers is None else self.known
            facts = cells_where(
                self.where, table, columns, theirs, self.attackers, self.weights, self.missing or "category", True
            )
        return SuppressRowsStep(facts, writes=() if self.remove else known or (), removes_rows=self.remove)


@dataclass(frozen=True)
class SuppressRowsStep(Step):
    """The prepared `SuppressRows`.

    facts: booleans (rows,), named "0": whether each row is suppressed.
    """

    facts: RowFacts

    def apply(self, chunk: Chunk) -> None:
        suppressed = self.facts.read(chunk)["0"]
        if self.removes_rows:
            chunk.keep_rows(~suppressed)
        for name in self.writes:
            suppress_in(chunk, name, suppressed)
