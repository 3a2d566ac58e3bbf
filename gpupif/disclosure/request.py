"""The checked request of a risk assessment: columns, disclosure measures, and the measures of cells that these need."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from ..attack.distances import CategoryOrder
from ..attack.hierarchy_files import TextOrder, names_file, read_distance, read_named_files
from ..attack.request import MISSING, ScoreRequest, nearly_unique
from ..encoding.column import Column
from ..engines.base import Job
from ..engines.choose import DeviceRequest, requested_device
from ..errors import InputError, NearlyUniqueWarning, warn
from ..io.base import Source
from ..measures import as_weighted, resolve_measures
from ..utils.display import plural
from ..utils.validation import (
    as_columns,
    brief,
    check_exist,
    check_not_known,
    check_unique,
    check_weights,
    check_word,
    share,
    table_value,
    whole_number,
)
from .models import MODELS, Model

# The distances that are named by a word.
DISTANCE_WORDS = ("ordered", "nominal")
# The most values of a column: codes of values have 31 bits.
MOST_VALUES = 2**31 - 1


# The measures of a cell that are the rows (with weights the people) and the distinct values of its class.
CLASS_SIZE = MODELS["k"].cell
DISTINCT = MODELS["distinct_l"].cell


class NoAttribute(Enum):
    """The name of `constant_column`. A member of an enumeration stays the same object in every process."""

    NONE = 0


# The name of the scored column if no sensitive attribute is asked for.
NO_ATTRIBUTE = NoAttribute.NONE


@dataclass(frozen=True)
class RiskRequest:
    """The columns, the disclosure measures and how to find them; checked as far as is possible without the table.

    quasi_identifiers: list of column names.
    sensitive: list of column names. The sensitive attributes; may be empty.
    models: sequence of Model. The disclosure measures that are wanted.
    l_values: int or None. The l of recursive (c,l)-diversity. None: the distinct l of the table.
    distance: the distance between values, as in `gpupif.models.t_closeness`, with files already read. None: by type.
    missing: str. The treatment of missing values: "category", "error" or "wildcard".
    weights: column name or None. The column of sampling weights.
    device: DeviceRequest. The device that the configuration asks for.
    groups: int. How many of the most homogeneous classes are wanted.
    threshold: float, in (0, 1]. A risk above the threshold counts as at risk.
    household: column name or None. The column of the household of each row. Default None.
    max_global_risk: float or None. The limit of the global risk for which a threshold is wanted. Default None.
    may_lack_values: bool. True if a sensitive attribute may have a single value, as in a treated table. Default False.
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
    def from_arguments(
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
        """Return the request that arguments of `gpupif.risk` make. sensitive: None for no attribute.

        Raises InputError.
        """
        known = as_columns("quasi_identifiers", quasi_identifiers, table)
        sensitive_columns = [] if sensitive is None else as_columns("sensitive", sensitive, table)
        check_word("missing", missing, MISSING)
        if not sensitive_columns and (distance is not None or l_values is not None):
            idle = "l" if distance is None else "distance"
            raise InputError(f"{idle}: expected only with a sensitive attribute. Name one with sensitive=.")
        check_not_known(sensitive_columns, known)
        if household is not None and household in {*known, *sensitive_columns, weights}:
            named = {"quasi_identifiers": known, "sensitive": sensitive_columns, "weights": [weights]}
            other = next(argument for argument, columns in named.items() if household in columns)
            raise InputError(
                "household: expected a column that only says which rows are of one household, got "
                f"{household!r}, which {other}= names too. Name it in one of them only."
            )
        read = read_distance if names_file(distance) else read_named_files
        if l_values is not None and not any(model.of_l for model in models):
            raise InputError("l: expected with the measure 'recursive_c' only. Add it to models=, or leave l= out.")
        return cls(
            quasi_identifiers=known,
            sensitive=sensitive_columns,
            models=models,
            l_values=None if l_values is None else whole_number("l", l_values, "values", most=MOST_VALUES),
            distance=read("distance", distance),
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
        """The columns that are needed: quasi-identifiers, sensitive attributes, and last the column of households."""
        return [*self.quasi_identifiers, *self.sensitive, *([] if self.household is None else [self.household])]

    @property
    def household_column(self) -> int | None:
        """The index of the column of households in `columns`; None without households."""
        return None if self.household is None else len(self.columns) - 1

    @property
    def read(self) -> list[Hashable]:
        """The columns that are read: `columns`, and last the column of the weights if it is not in `columns`."""
        return self.columns if self.weights is None or self.weights in self.columns else [*self.columns, self.weights]

    @property
    def matching(self) -> bool:
        """True if missing values match every value."""
        return self.missing == "wildcard"

    @property
    def kept_missing(self) -> str:
        """The way to encode missing values: "error" refuses them, "category" makes them a value of their own."""
        return "category" if self.matching else self.missing

    @property
    def may_look_again(self) -> bool:
        """True if l of recursive (c,l)-diversity follows from a first search, so a second search may be needed."""
        return self.l_values is None and any(model.of_l for model in self.models)

    @property
    def asks_levels(self) -> bool:
        """True if the number of rows is needed for each risk that occurs."""
        return self.max_global_risk is not None

    def pick(self, names: Sequence[Any]) -> list[Any]:
        """Return the needed columns in the order of `names`. Raises InputError if a column is not there."""
        return pick_needed(self.quasi_identifiers, self.sensitive, names, self.weights, self.household)

    def choose(self, source: Source) -> list[str]:
        """Return the columns that are read from a table of files. Raises InputError as `pick`."""
        self.pick(source.names)
        return [str(name) for name in self.read]

    def distances(self, orders: Mapping[Hashable, Sequence[Any]]) -> Mapping[Any, Any]:
        """Return the distance of each sensitive attribute that has one: a given distance, or an order of categories.

        orders: all values of ordered categories, in order, by column.
        """
        ordered = {name: CategoryOrder(order) for name, order in orders.items() if name in self.sensitive}
        return {**ordered, **self._given()}

    def score_request(self, orders: Mapping[Hashable, Sequence[Any]]) -> ScoreRequest:
        """Return the request for scores of cells that the disclosure measures need.

        orders: all values of ordered categories, in order, by column.
        """
        scored_columns = self.sensitive or [NO_ATTRIBUTE]
        # `constant_column` is no column of the table, so it comes last.
        columns = [*self.columns, *([] if self.sensitive else scored_columns)]
        measures = resolve_measures(self._cell_measures())
        return ScoreRequest(
            scored_columns=scored_columns,
            known=self.quasi_identifiers,
            used=columns,
            priors={},
            accuracies={},
            distances=self.distances(orders),
            missing=self.missing,
            measures=measures if self.weights is None else tuple(map(as_weighted, measures)),
            dtype="float64",
            weights=self.weights,
        )

    def _cell_measures(self) -> list[str]:
        """Return the measures of cells whose extremes are needed.

        If missing values match every value, sizes of classes and homogeneous classes follow from scores of cells too.
        """
        matching, l_values = self.matching, self.l_values
        models = [model for model in self.models if not model.of_l or l_values]
        measures = [model.measure(l_values or 0, matching) for model in models]
        if self.may_look_again:
            measures += [DISTINCT, recursive_for_one(matching)]
        if matching and self.groups and self.sensitive:
            measures += [recursive_for_one(matching), "entropy"]
        return [*measures, CLASS_SIZE] if matching else measures

    def check_columns(
        self, columns: Sequence[Column], rows: int, on_warning: Callable[[str, type[Warning]], None] = warn
    ) -> None:
        """Raise InputError for columns that the request does not allow; warn of nearly unique quasi-identifiers.

        Rows without a household are not allowed, nor (unless `may_lack_values`) a sensitive attribute with one value or
        fewer than l values. columns: begins with the columns of the request.
        """
        known_count = len(self.quasi_identifiers)
        if self.household_column is not None:
            households = columns[self.household_column]
            check_households(households.name, households.missing_rows)
        for column in columns[known_count : known_count + len(self.sensitive)]:
            valued = column.without_missing() if self.matching and column.missing else column
            if not self.may_lack_values:
                check_values(valued)
            if self.l_values is not None and self.l_values > valued.cardinality and not self.may_lack_values:
                raise InputError(
                    f"l: expected at most {valued.cardinality:,}, the different values of column {column.name!r}; "
                    f"got {self.l_values:,}."
                )
        for column in nearly_unique(columns[:known_count], rows):
            on_warning(
                f"quasi_identifiers: column {column.name!r}: {column.cardinality:,} distinct values in {rows:,} rows, "
                "so nearly every class is a single row. Leave it out (an identifier), or bin it (a measurement).",
                NearlyUniqueWarning,
            )

    def _given(self) -> Mapping[Any, Any]:
        """Return the given distances by sensitive attribute. Raises InputError."""
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
                f"{{attribute: distance}} of {', '.join(map(repr, names))}; got {brief(given)}."
            )
        return dict.fromkeys(names, given)


def pick_needed(
    known: Sequence[Hashable],
    sensitive: Sequence[Hashable],
    names: Sequence[Any],
    weights: Hashable = None,
    household: Hashable = None,
) -> list[Any]:
    """Return the columns among `names` that are needed. Raises InputError if a column is not there."""
    if not names:
        raise InputError("table: expected at least one column, got none.")
    check_unique(names)
    check_exist("quasi_identifiers", known, names)
    check_exist("sensitive", sensitive, names)
    check_weights(weights, names)
    check_exist("household", [] if household is None else [household], names)
    wanted = {*known, *sensitive, *(name for name in (weights, household) if name is not None)}
    return [name for name in names if name in wanted]


def _by_attribute(given: Mapping[Any, Any]) -> bool:
    """Return whether a dictionary of distances can only be by attribute: it has values that no hierarchy has."""
    return any(
        isinstance(value, Mapping | TextOrder) or (isinstance(value, str) and value in DISTANCE_WORDS)
        for value in given.values()
    )


def recursive_for_one(matching: bool) -> str:
    """Return the cell measure of recursive diversity for l = 1, whose highest is r_1 / (r_1 + ... + r_m)."""
    return MODELS["alpha"].measure(1, matching)


@contextmanager
def about_distance() -> Iterator[None]:
    """Rename the argument in errors about a distance to its name in `gpupif.risk`."""
    try:
        yield
    except InputError as error:
        raise error.about("distance", "distances: ") from None


def constant_column(rows: int, given: int) -> Column:
    """Return a column with one value in all `rows` rows, the scored column if there is no sensitive attribute.

    given: the number of rows with codes; 0 if codes are elsewhere.
    """
    return Column(NO_ATTRIBUTE, np.zeros(given, np.uint8), np.array([rows]), np.zeros(1, np.uint8), False)


def with_households(job: Job, household: int | None) -> Job:
    """Return the job with the column of households, if there is one, among its scored columns.

    Then the cut into partitions keeps its codes. No engine scores the column.
    """
    return job if household is None else replace(job, scored_columns=[*job.scored_columns, household])


def check_households(name: Hashable, missing: int) -> None:
    """Raise InputError if rows have no household. missing: the number of such rows."""
    if missing:
        raise InputError(
            f"household: column {name!r}: expected a household in each row, got {missing:,} missing "
            f"{plural(missing, 'value')}, which might be of one household or of many. Give each row without one a "
            "household of its own."
        )


def check_values(column: Column) -> None:
    """Raise InputError for a sensitive attribute of fewer than two values."""
    if column.cardinality < 2:
        came = f"{table_value(column.values()[0])} in all rows" if column.cardinality else "none"
        raise InputError(
            f"sensitive: column {column.name!r}: expected at least two different values, got {came}, so there is "
            "nothing to learn. Leave it out."
        )
