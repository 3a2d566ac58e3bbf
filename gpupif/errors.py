"""What gpupif raises. Every message names what was wrong, what was expected, what came, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable


class GpupifError(Exception):
    """Base of all errors that gpupif raises on purpose."""


class InputError(GpupifError, ValueError):
    """A table or an argument that cannot be scored as it is."""


class ColumnNotFoundError(InputError):
    """A column was named that the table does not have."""

    def __init__(self, argument: str, missing: Iterable[object], existing: Iterable[object]) -> None:
        names = ", ".join(repr(name) for name in missing)
        have = ", ".join(repr(name) for name in existing)
        super().__init__(f"{argument}: no column {names} in the table. Columns that exist: {have}.")


class ColumnTypeError(InputError, TypeError):
    """A column whose values cannot be compared for equality as categories (lists, structs, ...)."""


class PriorError(InputError):
    """A prior that is no probability distribution over the values of its column."""


class TableReadError(GpupifError, ValueError):
    """A file that is missing, empty, truncated, or not what its name says."""


class OutputError(GpupifError, ValueError):
    """An output that cannot be written where it was asked for."""


class DeviceError(GpupifError, RuntimeError):
    """A device was asked for that cannot be used here."""


class NearlyUniqueWarning(UserWarning):
    """A column in which nearly every value occurs once: every other column then has cohorts of one row."""
