"""Rows suppressed: where a condition on their scores holds, or where too few are equal to them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...errors import InputError
from ...utils.validation import brief, check_exist, check_word, whole_number
from ..base import Piece, RowFacts, Step, Tools, Treatment, WorkingTable
from .measured_criteria import READINGS
from .scored_condition import as_names, cells_where, check_condition
from .suppress import check_way, suppress_in

WAYS = ("where", "k")


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
        way = check_way(self, WAYS, {"where": ("columns", "known", "attackers", "weights", "missing"), "k": ()})
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

    def prepare(self, table: WorkingTable, tools: Tools) -> Step:
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

    def apply(self, piece: Piece) -> None:
        suppressed = piece.facts(self.facts)["0"]
        if self.columns is None:
            piece.keep_rows(~suppressed)
            return
        for name in self.columns:
            suppress_in(piece, name, suppressed)
