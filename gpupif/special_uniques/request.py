"""The arguments of `suda`, checked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..attack.weights import Units, read_weights
from ..encoding.column import Column
from ..errors import InputError
from ..marginals.request import CountRequest
from ..utils.refused_combinations import WEIGHTS_AND_FRACTION, WEIGHTS_WITHOUT_SAMPLE, WILDCARD_DIS
from ..utils.validation import Columns, as_list, check_word, share, whole_number
from .scoring import msu_weights
from .value_combinations import MissingValues

# How missing values can be taken.
MISSING = ("category", "ignore", "wildcard", "error")
# The most columns of a set where nobody says, of a table that has so many.
DEFAULT_SIZE = 3


@dataclass(frozen=True)
class SudaRequest:
    """reads: what is read of the table, and how; its columns are the key variables. size_given: whether somebody asked
    for `max_size`. Others: as of `gpupif.suda`.
    """

    reads: CountRequest
    max_size: int
    size_given: bool
    missing: str
    sampling_fraction: float | None
    contributions: bool

    @classmethod
    def from_arguments(
        cls,
        columns: Columns | None,
        max_size: Any,
        missing: str,
        sampling_fraction: Any,
        contributions: bool,
        weights: Hashable = None,
    ) -> SudaRequest:
        """From arguments as they come; raises InputError."""
        given = max_size is not None
        size = whole_number("max_size", max_size, "columns") if given else DEFAULT_SIZE
        named = None if columns is None else as_list("columns", columns, repeats=True)
        _check_named_once(named or [])
        fraction = None if sampling_fraction is None else share("sampling_fraction", sampling_fraction)
        check_word("missing", missing, MISSING)
        if weights is not None and fraction is not None:
            raise WEIGHTS_AND_FRACTION.refusal()
        if missing == "wildcard" and (weights is not None or fraction is not None):
            raise WILDCARD_DIS.refusal()
        read_as = "error" if missing == "error" else "category"
        return cls(CountRequest(named, weights, read_as), size, given, missing, fraction, contributions)

    def for_columns(self, columns: int) -> SudaRequest:
        """The request for a table with so many key variables; raises InputError where larger sets were asked for."""
        if self.size_given:
            check_size(columns, self.max_size)
        return replace(self, max_size=min(self.max_size, columns))

    def set_weights(self, columns: int) -> list[float]:
        """Return the number that an MSU of each size adds to a score."""
        return msu_weights(columns, self.max_size)

    def missing_values(self, columns: Sequence[Column]) -> MissingValues | None:
        """The missing values of the key variables, where they are no values like others."""
        if self.missing not in ("ignore", "wildcard") or not any(column.missing for column in columns):
            return None
        codes = tuple(column.cardinality - 1 if column.missing else -1 for column in columns)
        return MissingValues(codes, self.missing == "wildcard")


def _check_named_once(named: Sequence[Hashable]) -> None:
    """Raise InputError for a column that is named twice: sets of it and itself there are none."""
    for column in dict.fromkeys(named):
        if named.count(column) > 1:
            raise InputError(
                f"columns: expected different columns, got {column!r} {named.count(column)} times. Name it once."
            )


def sample_units(column: Column) -> Units:
    """The sampling weights of a sample, 1 or more each; raises InputError as `read_weights`."""
    units = read_weights(column)
    least = float(units.of_code.min()) * units.unit
    if least < 1:
        raise WEIGHTS_WITHOUT_SAMPLE.refusal(f" (column {column.name!r} has {least:g})")
    return units


def check_size(columns: int, max_size: int) -> None:
    """Raise InputError for sets of more columns than there are."""
    if max_size > columns:
        raise InputError(
            f"max_size: expected at most {columns}, the number of columns, got {max_size}. Give max_size={columns}."
        )
