"""Suppression of cells and of rows: where a condition on scores holds, or until criteria hold."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...criteria.criterion import read_criteria
from ...criteria.criterion_set import CriterionSet, CriterionValue
from ...errors import InputError
from ...utils.validation import brief, check_exist, check_word, is_number, whole_number
from ..coded_columns import CodedColumn
from ..steps import Chunk, RowFacts, Step
from ..treatment import Tools, TreatedTable, Treatment
from .class_suppression import with_missing
from .measured_criteria import READINGS, suppress_to_criteria
from .scored_condition import as_names, cells_where, check_condition

WAYS = ("where", "k", "require")
# Of a row, and of each of its columns that criteria need, while cells are suppressed until these hold; measured.
ROW_BYTES, COLUMN_BYTES = 64, 8


@dataclass(frozen=True)
class Suppress(Treatment):
    """Cells suppressed, so that they are missing: where a condition on their scores holds, or until criteria hold.

    One of ``where``, ``k`` and ``require`` is given. Where a cell is missing already it stays so.

    Parameters
    ----------
    columns:
        Whose cells may be suppressed.
    where:
        A condition on any of gpupif's measures, as of `Scores.cells`: ``"csf > 0.9"``, ``"cig >= 3 and cohort_size <
        5"``. The table is scored as it is treated so far; the cells for which it holds are suppressed, all at once. A
        cell that is suppressed changes the scores of others: to reach a limit use ``require``.
    k:
        Short for ``require=["k>=5"]``: on the quasi-identifiers every row is one of at least so many.
    require:
        Criteria, one or several, as of `gpupif.protect`: ``"k>=5"``, ``"known=2: k>=3"``, ``"max csf<=0.9"``,
        ``"uniques<=0"``. In rounds the cells that break them are suppressed; then each that is not needed is restored,
        so that no single one can be. Cells of rows, not rows of a class, are suppressed: of equal rows the last ones.
    quasi_identifiers:
        With k and require: the columns that the attacker knows, and whose cells are scored; default `columns`. Those
        that are not in `columns` stay as they are, so that classes are within their values (sdcMicro's strata).
    sensitive:
        With require: sensitive attributes, for ``distinct_l``, ``t`` and others.
    known:
        With where: what the attacker knows, as of `gpupif.score`; default all columns of the table, and a number is any
        so many of these.
    attackers:
        With where and require: several attackers, as of `gpupif.score`; criteria name them.
    weights:
        With where: the column of sampling weights, as of `gpupif.score`.
    missing:
        How missing values are read, those that were there too: "category", as a value of their own, or "wildcard", as
        any value. Default: with where "category"; with require both, the worse of which counts, for a hole is seen
        too. With "wildcard" alone fewer cells are needed (sdcMicro's ``alpha=1``), and rows of few holes may be told
        apart by these; the work grows with the square of the rows.
    importance:
        With k and require: ``{column: importance}``, above 0, default 1. Less important columns are suppressed first.

    Raises
    ------
    InputError
        None or several of where, k and require; what is no condition, criterion or measure; a column that is not
        there;
        importance that is not above 0; a criterion that cannot be reached, with the columns that stand in the way; with
        k and require, a table that does not fit into memory.

    Notes
    -----
    Ties are resolved by importance, then by the order of columns and rows, so that the same cells are suppressed in
    every kind of table, with any number of threads. Fewest cells are not promised: that is NP-hard (Meyerson &
    Williams 2004, On the complexity of optimal k-anonymity). Local suppression: Templ, Kowarik & Meindl, sdcMicro
    (2015), section 3.2.2.

    """

    do: ClassVar[str] = "suppress"

    columns: Sequence[Hashable]
    where: str | None = None
    k: int | None = None
    require: Sequence[str] | str | None = None
    quasi_identifiers: Sequence[Hashable] | None = None
    sensitive: Sequence[Hashable] | None = None
    known: Any = None
    attackers: Mapping[str, Any] | None = None
    weights: Hashable | None = None
    missing: str | None = None
    importance: Mapping[Hashable, float] | None = None

    def check(self) -> None:
        names = as_names("columns", self.columns)
        way = check_way(self, WAYS, {"where": ("known", "weights"), "k": _OF_K, "require": (*_OF_K, *_OF_REQUIRE)})
        if self.missing is not None:
            check_word("missing", self.missing, READINGS)
        if self.quasi_identifiers is not None:
            as_names("quasi_identifiers", self.quasi_identifiers)
        if way == "where":
            check_condition(self.where, self.attackers)
        elif way == "k":
            whole_number("k", self.k, "rows")
        else:
            read_criteria(self.require)
        _check_importance(self.importance, names)

    def named(self) -> Sequence[Hashable]:
        """The columns that it must find in the table."""
        found = as_names("columns", self.columns)
        for one in (self.quasi_identifiers, self.sensitive):
            found += [] if one is None else as_names("columns", one)
        return list(dict.fromkeys(found))

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        names = as_names("columns", self.columns)
        check_exist("columns", names, table.names)
        if self.where is not None:
            facts = cells_where(
                self.where, table, names, self.known, self.attackers, self.weights, self.missing or "category"
            )
            return SuppressStep(names, facts)
        known = names if self.quasi_identifiers is None else as_names("quasi_identifiers", self.quasi_identifiers)
        sensitive = [] if self.sensitive is None else as_names("sensitive", self.sensitive)
        check_exist("quasi_identifiers", known, table.names)
        check_exist("sensitive", sensitive, table.names)
        asked = [f"k>={self.k}"] if self.require is None else self.require
        criteria = CriterionSet.from_arguments(asked, known, sensitive, self.attackers, names=table.names)
        needed = [name for name in table.names if name in {*criteria.columns, *names}]
        importance = {needed.index(name): float((self.importance or {}).get(name, 1)) for name in names}
        codes = table.codes(needed, ROW_BYTES + COLUMN_BYTES * len(needed))
        found, values = suppress_to_criteria(codes, needed, criteria, importance, self.missing)
        facts = table.facts_of({str(place): found.cells[needed.index(name)] for place, name in enumerate(names)})
        return SuppressStep(names, facts, found.rounds, found.restored, values, int(found.cells.any(axis=0).sum()))


_OF_K = ("quasi_identifiers", "importance")
_OF_REQUIRE = ("sensitive",)


def check_way(treatment: Any, ways: Sequence[str], only: Mapping[str, Sequence[str]]) -> str:
    """Which of several arguments says what is suppressed; only: by it the arguments that go with it alone.

    Raises InputError where none or several are given, or one that does not go with it.
    """
    given = [way for way in ways if getattr(treatment, way) is not None]
    listed = f"{', '.join(ways[:-1])} or {ways[-1]}"
    if len(given) != 1:
        raise InputError(f"{treatment.do}: expected one of {listed}, got {' and '.join(given) or 'none'}.")
    (way,) = given
    for argument in dict.fromkeys(argument for several in only.values() for argument in several):
        if argument not in only[way] and getattr(treatment, argument) is not None:
            of = " or ".join(one for one, several in only.items() if argument in several)
            raise InputError(f"{treatment.do}: {argument} goes with {of}, and means nothing with {way}. Leave it out.")
    return way


def _check_importance(importance: Any, names: Sequence[Hashable]) -> None:
    if importance is None:
        return
    if not isinstance(importance, Mapping):
        raise InputError(f"importance: expected a dictionary by column, got {brief(importance)}.")
    check_exist("importance", importance, names, "columns=")
    for name, value in importance.items():
        if not is_number(value) or not 0 < value < float("inf"):
            raise InputError(f"importance: column {name!r}: expected a number above 0, got {brief(value)}.")


@dataclass(frozen=True)
class SuppressStep(Step):
    """Suppression prepared. facts: by place of a column which of its cells become missing.

    rounds, restored, values: of criteria, see `Suppressed` and `MeasuredCriteria.values`; rows: those with a cell that
    is suppressed.
    """

    columns: Sequence[Hashable]
    facts: RowFacts
    rounds: int | None = None
    restored: int | None = None
    values: Mapping[str, Sequence[CriterionValue]] | None = None
    rows: int | None = None

    @property
    def writes(self) -> Sequence[Hashable]:
        return self.columns

    def apply(self, chunk: Chunk) -> None:
        facts = self.facts.read(chunk)
        for place, name in enumerate(self.columns):
            suppress_in(chunk, name, facts[str(place)])

    def record(self) -> dict[str, Any]:
        if self.values is None:
            return {}
        criteria: dict[str, dict[str, float | None]] = {}
        for reading, several in self.values.items():
            for one in several:
                criteria.setdefault(str(one.criterion), {})[reading] = None if one.value is None else float(one.value)
        return {"rounds": self.rounds, "restored": self.restored, "rows": self.rows, "criteria": criteria}

    def revealing(self) -> Sequence[str]:
        return ("rounds", "restored", "rows")


def suppress_in(chunk: Chunk, name: Hashable, rows: Any) -> None:
    """Make the values of a column missing in some rows."""
    if np.any(rows):
        column = chunk[name]
        chunk[name] = CodedColumn(with_missing(column.codes, rows, len(column.labels)), column.labels)


WAYS_OF_ROWS = ("where", "k")


@dataclass(frozen=True)
class SuppressRows(Treatment):
    """Rows taken away, or left without quasi-identifiers: by a condition on their scores, or as too few are equal.

    One of ``where`` and ``k`` is given.

    Parameters
    ----------
    where:
        A condition on measures of rows (``"class_size < 5"``) or of cells (``"csf > 0.9"``), as of `Suppress`; a row is
        suppressed where it holds of any of its cells in `columns`.
    k:
        Rows of which fewer than k agree on the quasi-identifiers, a missing value being a value of its own. The others
        lose none of their class, so every class that is left has at least k rows: also where missing values match every
        value, for then more rows agree.
    quasi_identifiers:
        The columns that the attacker knows. With k they are needed; with where the default is all columns of the table.
    columns:
        With where: whose cells are looked at; default the quasi-identifiers.
    known, attackers, weights, missing:
        With where: as of `Suppress`. `known` is in place of the quasi-identifiers where that is any few of them.
    remove:
        True: the rows are taken away. False: they stay, and all their quasi-identifiers become missing, as ARX has it:
        counts of rows and what else is in them stay, but rows that are left so are a class of their own, which may be
        small; whoever knows that a person is in the table and in no other class finds that person among them.

    Raises
    ------
    InputError
        None or both of where and k; no quasi-identifiers with k, or none to take away; what is no condition; a column
        that is not there.

    Notes
    -----
    Prasser, Kohlmayer, Lautenschläger & Kuhn 2014, ARX: suppression of records in equivalence classes that do not
    meet the criteria.

    """

    do: ClassVar[str] = "suppress_rows"

    where: str | None = None
    k: int | None = None
    quasi_identifiers: Sequence[Hashable] | None = None
    columns: Sequence[Hashable] | None = None
    known: Any = None
    attackers: Mapping[str, Any] | None = None
    weights: Hashable | None = None
    missing: str | None = None
    remove: bool = True

    def check(self) -> None:
        way = check_way(self, WAYS_OF_ROWS, {"where": ("columns", "known", "attackers", "weights", "missing"), "k": ()})
        for argument in ("columns", "quasi_identifiers"):
            if getattr(self, argument) is not None:
                as_names(argument, getattr(self, argument))
        if self.quasi_identifiers is None and (way == "k" or not self.remove):
            raise InputError(
                f"quasi_identifiers: expected the columns that {'classes are of' if way == 'k' else 'become missing'}, "
                "got none."
            )
        if not isinstance(self.remove, bool):
            raise InputError(f"remove: expected True or False, got {brief(self.remove)}.")
        if way == "k":
            whole_number("k", self.k, "rows")
            return
        check_condition(self.where, self.attackers)
        if self.missing is not None:
            check_word("missing", self.missing, READINGS)

    def named(self) -> Sequence[Hashable]:
        """The columns that it must find in the table."""
        several = (self.quasi_identifiers, self.columns)
        return list(dict.fromkeys(name for one in several if one is not None for name in as_names("columns", one)))

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        known = None if self.quasi_identifiers is None else as_names("quasi_identifiers", self.quasi_identifiers)
        check_exist("quasi_identifiers", known or [], table.names)
        if self.k is not None:
            assert known is not None
            # The class of a row is the same whichever of its columns is scored.
            facts = cells_where(f"class_size < {self.k}", table, known[:1], known, None, None, "category", True)
        else:
            assert self.where is not None
            everything = [name for name in table.names if name != self.weights]
            columns = (known or everything) if self.columns is None else as_names("columns", self.columns)
            theirs = known if self.known is None and self.attackers is None else self.known
            facts = cells_where(
                self.where, table, columns, theirs, self.attackers, self.weights, self.missing or "category", True
            )
        return SuppressRowsStep(facts, None if self.remove else known)


@dataclass(frozen=True)
class SuppressRowsStep(Step):
    """Suppression of rows prepared. facts: which; columns: that become missing in them, None to take them away."""

    facts: RowFacts
    columns: Sequence[Hashable] | None

    @property
    def writes(self) -> Sequence[Hashable]:
        return self.columns or ()

    @property
    def removes_rows(self) -> bool:
        return self.columns is None

    def apply(self, chunk: Chunk) -> None:
        suppressed = self.facts.read(chunk)["0"]
        if self.columns is None:
            chunk.keep_rows(~suppressed)
            return
        for name in self.columns:
            suppress_in(chunk, name, suppressed)
