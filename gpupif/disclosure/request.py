"""What is asked of a table: its columns, the disclosure measures and how to find them, checked."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..attack.distances import CategoryOrder
from ..attack.hierarchy_files import TextOrder, names_file, read_distance, read_named_files
from ..attack.request import MISSING
from ..engines.choose import DeviceRequest, requested_device
from ..errors import InputError
from ..io.base import Source
from ..utils.validation import as_columns, check_exist, check_unique, check_weights, check_word, share, whole_number
from .models import Model

# Distances that are told by a word.
WORDS = ("ordered", "nominal")
# Codes of values have 31 bits.
MOST_VALUES = 2**31 - 1


@dataclass(frozen=True)
class RiskRequest:
    """What is asked of a table: columns, disclosure measures and how to find them; checked as far as that is possible.

    l_values: l of recursive (c,l)-diversity; None: the distinct l of the table. weights: the column of sampling
    weights. groups: how many of the most homogeneous classes are wanted. threshold: an estimated risk above it counts
    as at risk. household: the column that says which household a row is of. max_global_risk: a global risk whose
    threshold
    is wanted. may_lack_values: whether a sensitive attribute may have a single value, as one of a treated table may:
    then there is nothing to learn.
    """

    quasi_identifiers: list[Hashable]
    sensitive: list[Hashable]
    models: Sequence[Model]
    l_values: int | None
    distance: Any
    missing: str
    weights: Hashable
    device: DeviceRequest
    groups: int
    threshold: float
    household: Hashable = None
    max_global_risk: float | None = None
    may_lack_values: bool = False

    @classmethod
    def of(
        cls,
        table: Any,
        quasi_identifiers: Any,
        sensitive: Any,
        models: Sequence[Model],
        l_values: Any = None,
        distance: Any = None,
        weights: Hashable = None,
        missing: str = "category",
        groups: int = 0,
        threshold: float = 1.0,
        household: Hashable = None,
        max_global_risk: Any = None,
    ) -> RiskRequest:
        """From arguments as they come, those of `gpupif.risk` that say what is asked of a table, so as many.

        sensitive None: no attribute. Raises InputError.
        """
        known = as_columns("quasi_identifiers", quasi_identifiers, table)
        sensitive_columns = [] if sensitive is None else as_columns("sensitive", sensitive, table)
        check_word("missing", missing, MISSING)
        if not sensitive_columns and (distance is not None or l_values is not None):
            idle = "l" if distance is None else "distance"
            raise InputError(f"{idle}: expected only with a sensitive attribute. Name one with sensitive=.")
        both = [name for name in sensitive_columns if name in known]
        if both:
            raise InputError(
                f"sensitive: column {both[0]!r} is a quasi-identifier too: the attacker knows it, so there is nothing "
                "left to learn. Name it in one of them only."
            )
        if household is not None and household in {*known, *sensitive_columns, weights}:
            other = (
                "quasi_identifiers"
                if household in known
                else "sensitive"
                if household in sensitive_columns
                else "weights"
            )
            raise InputError(
                "household: expected a column that only says which rows are of one household, got "
                f"{household!r}, which {other}= names too. Name it in one of them only."
            )
        apart = read_distance("distance", distance) if names_file(distance) else read_named_files("distance", distance)
        if l_values is not None and not any(model.of_l for model in models):
            raise InputError("l: expected with the measure 'recursive_c' only. Add it to models=, or leave l= out.")
        return cls(
            quasi_identifiers=known,
            sensitive=sensitive_columns,
            models=models,
            l_values=None if l_values is None else whole_number("l", l_values, "values", most=MOST_VALUES),
            distance=apart,
            missing=missing,
            weights=weights,
            device=requested_device(),
            groups=groups,
            threshold=threshold,
            household=household,
            max_global_risk=None if max_global_risk is None else share("max_global_risk", max_global_risk),
        )

    @property
    def columns(self) -> list[Hashable]:
        """All columns that are needed: the quasi-identifiers, the sensitive attributes, and that of households."""
        return [*self.quasi_identifiers, *self.sensitive, *([] if self.household is None else [self.household])]

    @property
    def household_place(self) -> int | None:
        """Where the column of households is among these."""
        return None if self.household is None else len(self.columns) - 1

    @property
    def read(self) -> list[Hashable]:
        """All columns that are read: these, and at last that of the weights if it is none of them."""
        return self.columns if self.weights is None or self.weights in self.columns else [*self.columns, self.weights]

    @property
    def matching(self) -> bool:
        """Whether missing values match every value."""
        return self.missing == "wildcard"

    @property
    def kept_missing(self) -> str:
        """How missing values are encoded: refused, or as a value of their own."""
        return "category" if self.matching else self.missing

    @property
    def may_look_again(self) -> bool:
        """Whether what is found at first tells the l of recursive (c,l)-diversity, to be looked for then."""
        return self.l_values is None and any(model.of_l for model in self.models)

    def pick(self, names: Sequence[Any]) -> list[Any]:
        """Of a table's columns those that are needed; raises InputError where one is not there."""
        return pick_needed(self.quasi_identifiers, self.sensitive, names, self.weights, self.household)

    def choose(self, source: Source) -> list[str]:
        """The columns that are needed of a table of files; raises InputError as `pick`."""
        self.pick(source.names)
        return [str(name) for name in self.read]

    def distances(self, orders: Mapping[Hashable, Sequence[Any]]) -> Mapping[Any, Any]:
        """The distance of each sensitive attribute that one is given of, or that has ordered categories, `orders`."""
        ordered = {name: CategoryOrder(order) for name, order in orders.items() if name in self.sensitive}
        return {**ordered, **self._given()}

    def _given(self) -> Mapping[Any, Any]:
        given, names = self.distance, self.sensitive
        if given is None:
            return {}
        if isinstance(given, Mapping) and (all(name in names for name in given) or _by_attribute(given)):
            strangers = [name for name in given if name not in names]
            if strangers:
                listed = ", ".join(map(repr, names))
                raise InputError(
                    f"distance: expected distances of sensitive attributes ({listed}), got {strangers[0]!r}."
                )
            return given
        if not isinstance(given, str) and len(names) > 1:
            raise InputError(
                "distance: expected a word, or with several sensitive attributes a dictionary "
                f"{{attribute: distance}} of {', '.join(map(repr, names))}; got {given!r:.60}."
            )
        return dict.fromkeys(names, given)


def pick_needed(
    known: Sequence[Hashable],
    sensitive: Sequence[Hashable],
    names: Sequence[Any],
    weights: Hashable = None,
    household: Hashable = None,
) -> list[Any]:
    """Of a table's columns `names` the quasi-identifiers, sensitive attributes, weights and households; raises
    InputError where one is not there.
    """
    if not names:
        raise InputError("table: expected at least one column, got none.")
    check_unique(names)
    check_exist("quasi_identifiers", known, names)
    check_exist("sensitive", sensitive, names)
    check_weights(weights, names)
    check_exist("household", [] if household is None else [household], names)
    beside = [name for name in (weights, household) if name is not None]
    return [name for name in names if name in known or name in sensitive or name in beside]


def _by_attribute(given: Mapping[Any, Any]) -> bool:
    """Whether a dictionary can only be one by attribute: it has what a hierarchy cannot have."""
    return any(
        isinstance(what, Mapping | TextOrder) or (isinstance(what, str) and what in WORDS) for what in given.values()
    )
