"""A criterion, read from text: a limit on a figure of a table, against one attacker."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError
from ..utils.validation import brief
from .quantities import OfClasses, OfModel, Quantity, read_quantity

_FORM = re.compile(
    r"(?:(?P<statistic>mean|max|min|p_?\d+(?:\.\d+)?)\s+)?(?P<word>[A-Za-z_]\w*(?:\.\d+)?)\s*(?:\((?P<inside>.*)\))?\s*"
    r"(?P<operator><=|>=|≤|≥|==|=|<|>)\s*(?P<number>[^\s<>=].*)?"
)
_OPERATORS = {"≤": "<=", "≥": ">="}
EXAMPLES = "'k>=5', 'distinct_l(disease)>=3', 'pif95<=3', 'max csf<=0.9' or 'known=3: k>=3'"


@dataclass(frozen=True)
class Criterion:
    """A limit on a figure of a table: ``Criterion.of("known=3: k>=5")``.

    quantity: what is limited. limit: the last value that is safe. known: what the attacker knows, where the criterion
    says
    so: columns, or any so many; attacker: by which name another argument says so. Without either the attacker knows the
    quasi-identifiers, or where cells are scored all columns but the scored one. written: the text that it was read
    from, which says it to those who wrote it.
    """

    quantity: Quantity
    limit: float
    known: tuple[str, ...] | int | None = None
    attacker: str | None = None
    written: str | None = field(default=None, compare=False)

    @classmethod
    def of(cls, text: Any) -> Criterion:
        """From text; a criterion as it is. Raises InputError."""
        if isinstance(text, Criterion):
            return text
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"criteria: expected limits as text, such as {EXAMPLES}; got {brief(text)}.")
        said, rest = _split_attacker(text.strip())
        found = _FORM.fullmatch(rest.strip())
        if found is None:
            raise InputError(
                f"criterion {text!r}: expected what is limited, >= or <=, and a number, such as {EXAMPLES}."
            )
        quantity = _quantity(text, found)
        limit = _limit(text, found["number"])
        _check_operator(text, quantity, _OPERATORS.get(found["operator"], found["operator"]), limit)
        known, attacker = _read_attacker(text, said)
        return cls(quantity, limit, known, attacker, text.strip())

    @classmethod
    def of_figure(cls, text: Any) -> Criterion:
        """From text that may leave the limit out, such as "pif95" or "known=3: k": then any value is safe.

        Raises InputError.
        """
        said, rest = _split_attacker(text.strip()) if isinstance(text, str) else (None, "")
        found = None if _FORM.fullmatch(rest.strip()) else _FORM.fullmatch(f"{rest.strip()} <=")
        if found is None:
            return cls.of(text)
        quantity = _quantity(text, found)
        return cls(quantity, math.inf if quantity.high_is_bad else -math.inf, *_read_attacker(text, said))

    @property
    def at_most(self) -> bool:
        """Whether it is an upper limit."""
        return self.quantity.high_is_bad

    @property
    def only_improves(self) -> bool:
        """Whether a table that meets it still does when values of any column are made coarser, whatever the table.

        Of an attacker with a name that depends on what he knows; see `CriterionSet`.
        """
        return self.quantity.only_improves(isinstance(self.known, int))

    def is_met(self, value: float | None) -> bool:
        """Whether a value is safe; one that is not known, or not defined, is not."""
        if value is None or math.isnan(value):
            return False
        return value <= self.limit if self.at_most else value >= self.limit

    @property
    def of_classes(self) -> bool:
        """Whether it is of equivalence classes or sensitive attributes, and not of cells of all columns."""
        return isinstance(self.quantity, OfClasses | OfModel)

    @property
    def is_of_sizes(self) -> bool:
        """Whether it is of the sizes of equivalence classes alone."""
        return isinstance(self.quantity, OfClasses) or (
            isinstance(self.quantity, OfModel) and not self.quantity.sensitive
        )

    @property
    def smallest_class(self) -> int | None:
        """K, where it says that each class of who knows the quasi-identifiers has so many rows; else None."""
        return None if self.known is not None or self.attacker is not None else self.smallest_class_of_all

    @property
    def smallest_class_of_all(self) -> int | None:
        """The same of whatever the attacker knows."""
        quantity = self.quantity
        if math.isinf(self.limit):
            return None
        if isinstance(quantity, OfModel) and not quantity.sensitive:
            return max(1, math.ceil(self.limit))
        if isinstance(quantity, OfClasses) and self.limit == 0:
            if quantity.figure.name in ("unique_rows", "unique_share"):
                return 2
            if quantity.figure.depends == ("k",):
                assert quantity.parameter is not None
                return int(quantity.parameter)
        return None

    def __str__(self) -> str:
        if math.isinf(self.limit):
            return self.figure
        if self.written is not None:
            return self.written
        sign = "<=" if self.at_most else ">="
        short = f"{self.limit:g}"
        return f"{self.figure}{sign}{short if float(short) == self.limit else repr(self.limit)}"

    @property
    def figure(self) -> str:
        """What it limits, as text."""
        said = self.attacker if self.attacker is not None else ""
        if self.known is not None:
            said = f"known={self.known if isinstance(self.known, int) else ','.join(self.known)}"
        return f"{said}: {self.quantity.text}" if said else self.quantity.text


def read_criteria(given: Any) -> list[Criterion]:
    """One criterion, or several, from text, each once; raises InputError for what is none."""
    several = [given] if isinstance(given, str | Criterion) else given
    if not isinstance(several, Iterable):
        raise InputError(f"criteria: expected limits as text, such as {EXAMPLES}; got {brief(given)}.")
    criteria = list(dict.fromkeys(Criterion.of(one) for one in several))
    if not criteria:
        raise InputError(f"criteria: expected at least one limit, such as {EXAMPLES}; got none.")
    return criteria


def _quantity(text: str, found: re.Match[str]) -> Quantity:
    """What a criterion limits, by the parts of its text."""
    return read_quantity(text, found["statistic"], found["word"], _stripped(found["inside"]))


def _split_attacker(text: str) -> tuple[str | None, str]:
    """What is said of the attacker before a colon, if anything, and the rest."""
    before, colon, behind = text.partition(":")
    # A colon within brackets is one of a column's name.
    return (before.strip(), behind) if colon and "(" not in before else (None, text)


def _read_attacker(text: str, said: str | None) -> tuple[tuple[str, ...] | int | None, str | None]:
    """What the attacker knows, or is called."""
    if said is None:
        return None, None
    word, equals, listed = said.partition("=")
    if equals and word.strip() == "known":
        listed = listed.strip()
        if re.fullmatch(r"\d+", listed):
            return int(listed), None
        names = tuple(name.strip() for name in listed.split(",") if name.strip())
        if names:
            return names, None
    elif said and not equals:
        return None, said
    raise InputError(
        f"criterion {text!r}: expected before the colon what the attacker knows, as in 'known=3: k>=5' (any three "
        "columns) or 'known=age,sex: k>=5', or the name of one of attackers=."
    )


def _limit(text: str, number: str | None) -> float:
    try:
        limit = float((number or "").strip().replace("_", "x"))
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        came = "nothing" if number is None else repr(number.strip())
        raise InputError(f"criterion {text!r}: expected a number as the limit, got {came}.")
    return limit


def _check_operator(text: str, quantity: Quantity, operator: str, limit: float) -> None:
    """Raise InputError for an operator that does not limit the risk."""
    right = "<=" if quantity.high_is_bad else ">="
    if operator != right:
        lower = "low" if quantity.high_is_bad else "high"
        raise InputError(
            f"criterion {text!r}: {quantity.text} is safe where it is {lower}: write {quantity.text}{right}{limit:g}."
        )


def _stripped(inside: str | None) -> str | None:
    return None if inside is None else inside.strip() or None
