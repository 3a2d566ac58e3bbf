"""A criterion, read from text: a limit of a figure of a table, against one attacker."""

from __future__ import annotations

import contextlib
import csv
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..disclosure.models import ROUNDING
from ..errors import InputError
from ..utils.validation import brief
from .quantities import ClassQuantity, ModelQuantity, Quantity, RiskQuantity, range_of, read_quantity

_FORM = re.compile(
    r"(?:(?P<statistic>mean|max|min|p_?\d+(?:\.\d+)?)\s+)?(?P<word>[A-Za-z_]\w*(?:\.\w+)*)\s*(?:\((?P<inside>.*)\))?\s*"
    r"(?P<operator><=|>=|≤|≥|==|=|<|>)\s*(?P<number>[^\s<>=].*)?",
    re.DOTALL,
)
_OPERATORS = {"≤": "<=", "≥": ">="}
EXAMPLES = "'k>=5', 'distinct_l(disease)>=3', 'pif95<=3', 'max csf<=0.9' or 'known=3: k>=3'"


@dataclass(frozen=True)
class Criterion:
    """A limit on a figure of a table: ``Criterion.from_text("known=3: k>=5")``.

    quantity: the figure that is limited.
    limit: the last value that is safe.
    known: the columns that the attacker knows; a number n if the attacker knows any n of the quasi-identifiers.
    attacker: the name of an attacker that another argument describes. Without `known` and `attacker`, the attacker
        knows the quasi-identifiers without the scored column.
    written: the text that the criterion was read from; messages repeat it.
    """

    quantity: Quantity
    limit: float
    known: tuple[str, ...] | int | None = None
    attacker: str | None = None
    written: str | None = field(default=None, compare=False)

    @classmethod
    def from_text(cls, text: Any) -> Criterion:
        """Read a criterion from text; a Criterion is returned as it is. Raises InputError."""
        if isinstance(text, Criterion):
            return text
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"require: expected limits as text, such as {EXAMPLES}; got {brief(text)}.")
        attacker_text, figure_text = _split_attacker(text.strip())
        match = _FORM.fullmatch(figure_text.strip())
        if match is None:
            raise InputError(f"criterion {text!r}: expected a figure, >= or <=, and a number, such as {EXAMPLES}.")
        quantity = _quantity(text, match)
        limit = _limit(text, match["number"])
        _check_operator(text, quantity, _OPERATORS.get(match["operator"], match["operator"]), limit)
        known, attacker = _read_attacker(text, attacker_text)
        return cls(quantity, limit, known, attacker, text.strip())

    @classmethod
    def from_figure(cls, text: Any) -> Criterion:
        """Read a criterion whose text may leave out the limit, such as "pif95" or "known=3: k". Raises InputError.

        Without a limit, any value is safe.
        """
        attacker_text, figure_text = _split_attacker(text.strip()) if isinstance(text, str) else (None, "")
        has_limit = _FORM.fullmatch(figure_text.strip())
        match = None if has_limit else _FORM.fullmatch(f"{figure_text.strip()} <=")
        if match is None:
            return cls.from_text(text)
        quantity = _quantity(text, match)
        return cls(quantity, math.inf if quantity.high_is_bad else -math.inf, *_read_attacker(text, attacker_text))

    @property
    def at_most(self) -> bool:
        """True if the criterion is an upper limit."""
        return self.quantity.high_is_bad

    def is_met(self, value: float | None) -> bool:
        """Return whether a value is safe. A value that is not known (NaN) or not defined (None) is not safe.

        A value that differs from the limit by 1e-12 of either or less meets it: sums of floats are rounded.
        """
        if value is None or math.isnan(value):
            return False
        beyond = value > self.limit if self.at_most else value < self.limit
        return not beyond or math.isclose(value, self.limit, rel_tol=ROUNDING)

    @property
    def of_classes(self) -> bool:
        """True if the criterion is on equivalence classes or sensitive attributes, not on the cells of all columns."""
        return isinstance(self.quantity, ClassQuantity | ModelQuantity | RiskQuantity)

    @property
    def is_of_sizes(self) -> bool:
        """True if the criterion depends on the sizes of equivalence classes alone."""
        return isinstance(self.quantity, ClassQuantity) or (
            isinstance(self.quantity, ModelQuantity) and not self.quantity.sensitive
        )

    @property
    def of_default_attacker(self) -> bool:
        """True if the attacker is the one who knows the quasi-identifiers."""
        return self.known is None and self.attacker is None

    @property
    def of_each_class(self) -> bool:
        """True if each class over what the attacker knows meets or breaks the criterion on its own."""
        quantity = self.quantity
        of_values = isinstance(quantity, ModelQuantity) and quantity.sensitive
        return not math.isinf(self.limit) and (of_values or self.smallest_class_of_all is not None)

    @property
    def smallest_class(self) -> int | None:
        """Return k if it says that each class over the quasi-identifiers has at least k rows, else None."""
        return self.smallest_class_of_all if self.of_default_attacker else None

    @property
    def smallest_class_of_all(self) -> int | None:
        """Return k if it says that each class, whatever its attacker knows, has at least k rows, else None."""
        quantity = self.quantity
        if math.isinf(self.limit):
            return None
        if isinstance(quantity, ModelQuantity) and not quantity.sensitive:
            return max(1, math.ceil(self.limit))
        if isinstance(quantity, ClassQuantity) and self.limit == 0:
            if quantity.figure.name in ("unique_rows", "unique_share"):
                return 2
            if quantity.figure.depends == ("k",):
                assert quantity.parameter is not None
                return int(quantity.parameter)
        return None

    @property
    def fewest_values(self) -> int:
        """The fewest different values of a sensitive attribute that a class must have to meet the criterion."""
        if not isinstance(self.quantity, ModelQuantity) or math.isinf(self.limit):
            return 1
        name, limit = self.quantity.model.name, self.limit
        if name == "alpha":
            limit = 1 / limit if limit > 0 else 1
        elif name == "recursive_c":
            limit = self.quantity.l_values
        elif name not in ("distinct_l", "entropy_l"):
            limit = 1
        return max(1, math.ceil(limit * (1 - ROUNDING)))

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
        """The text of the figure that is limited, after the attacker, if the criterion names one."""
        said = self.attacker or ""
        if self.known is not None:
            said = f"known={self.known if isinstance(self.known, int) else _list_text(self.known)}"
        return f"{said}: {self.quantity.text}" if said else self.quantity.text


def read_criteria(given: Any) -> list[Criterion]:
    """Read a criterion, or a list of criteria, from text. Of equal criteria the first is kept. Raises InputError."""
    texts = [given] if isinstance(given, str | Criterion) else given
    if not isinstance(texts, Iterable):
        raise InputError(f"require: expected limits as text, such as {EXAMPLES}; got {brief(given)}.")
    criteria = list(dict.fromkeys(Criterion.from_text(text) for text in texts))
    if not criteria:
        raise InputError(f"require: expected at least one limit, such as {EXAMPLES}; got none.")
    return criteria


def _quantity(text: str, match: re.Match[str]) -> Quantity:
    """Return the quantity that a criterion limits, from the parts of its text."""
    inside = match["inside"]
    return read_quantity(text, match["statistic"], match["word"], None if inside is None else inside.strip() or None)


def _split_attacker(text: str) -> tuple[str | None, str]:
    """Return the text before a colon, which is about the attacker, and the text after it; None without a colon."""
    # A colon within double quotes, or within the brackets of a figure, is part of a column's name.
    match = re.match(r'(known\s*=(?>"[^"]*"|[^:])*+|(?>"[^"]*"|[^:(])*+):(.*)', text, re.DOTALL)
    return (match[1].strip(), match[2]) if match else (None, text)


def _read_attacker(text: str, said: str | None) -> tuple[tuple[str, ...] | int | None, str | None]:
    """Return `known` and `attacker` of a `Criterion`. said: the text before the colon."""
    if said is None:
        return None, None
    word, equals, listed = said.partition("=")
    if equals and word.strip() == "known":
        listed = listed.strip()
        if re.fullmatch(r"\d+", listed):
            return int(listed), None
        with contextlib.suppress(csv.Error):
            parts = next(csv.reader([listed], skipinitialspace=True, strict=True), [])
            names = tuple(name.strip() for name in parts if name.strip())
            if names:
                return names, None
    elif said and not equals:
        return None, said
    raise InputError(
        f"criterion {text!r}: expected before the colon what the attacker knows, as in 'known=3: k>=5' (any three "
        "columns) or 'known=age,sex: k>=5', or the name of one of attackers=."
    )


def _list_text(names: Iterable[str]) -> str:
    """Return names with commas between them. A name with a comma, a colon or a quote is in double quotes."""
    quoted = {name: '"' + name.replace('"', '""') + '"' for name in names if {*',:"'} & {*name}}
    return ",".join(quoted.get(name, name) for name in names)


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
        lower = "lower" if quantity.high_is_bad else "higher"
        raise InputError(
            f"criterion {text!r}: {quantity.text} is safer if it is {lower}: write {quantity.text}{right}{limit:g}."
        )
    words, lowest, highest = range_of(quantity)
    if not lowest <= limit <= highest:
        who = "every table meets it" if (limit > highest) == quantity.high_is_bad else "no table meets it"
        raise InputError(f"criterion {text!r}: {who}, for {quantity.text} is {words}. Write a limit within that range.")
