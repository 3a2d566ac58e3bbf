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

# The ways to read missing values.
MISSING = ("category", "ignore", "wildcard", "error")
# The default of `max_size`; a table of fewer columns lowers it.
DEFAULT_SIZE = 3


@dataclass(frozen=True)
class SudaRequest:
    """The arguments of `gpupif.suda`, checked.

    reads: the columns that are read of the table, and how missing values are encoded; its columns are the key
    variables. max_size: the most columns of a set. size_given: whether the caller named `max_size`. missing,
    sampling_fraction, contributions: the arguments of `gpupif.suda`.
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
        """Return the request from the arguments of `gpupif.suda`. Raises InputError."""
        given = max_size is not None
        size = whole_number("max_size", max_size, "columns") if given else DEFAULT_SIZE
        named = None if columns is None else as_list("columns", columns)
        fraction = None if sampling_fraction is None else share("sampling_fraction", sampling_fraction)
        check_word("missing", missing, MISSING)
        if weights is not None and fraction is not None:
            raise WEIGHTS_AND_FRACTION.refusal()
        if missing == "wildcard" and (weights is not None or fraction is not None):
            raise WILDCARD_DIS.refusal()
        read_as = "error" if missing == "error" else "category"
        return cls(CountRequest(named, weights, read_as), size, given, missing, fraction, contributions)

    def for_columns(self, columns: int) -> SudaRequest:
        """Return the request for a number of key variables. Raises InputError if the caller named a larger max_size."""
        if self.size_given:
            check_size(columns, self.max_size)
        return replace(self, max_size=min(self.max_size, columns))

    def set_weights(self, columns: int) -> list[float]:
        """Return the number that an MSU of 1, 2, ... columns adds to a score. columns: the number of key variables."""
        return msu_weights(columns, self.max_size)

    def missing_values(self, columns: Sequence[Column]) -> MissingValues | None:
        """Return the missing values of the key variables; None if there are none or each is a value of its own."""
        if self.missing not in ("ignore", "wildcard") or not any(column.missing for column in columns):
            return None
        codes = tuple(column.cardinality - 1 if column.missing else -1 for column in columns)
        return MissingValues(codes, self.missing == "wildcard")


def sample_units(column: Column) -> Units:
    """Return the sampling weights of a column. Raises InputError for a weight below 1, and as `read_weights`."""
    units = read_weights(column)
    least = float(units.of_code.min()) * units.unit
    if least < 1:
        raise WEIGHTS_WITHOUT_SAMPLE.refusal(f" (column {column.name!r} has {least:g})")
    return units


def check_size(columns: int, max_size: int) -> None:
    """Raise InputError if max_size is larger than the number of columns."""
    if max_size > columns:
        raise InputError(
            f"max_size: expected at most {columns}, the number of columns, got {max_size}. Give max_size={columns}."
        )
