"""What every way to tell is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..outcome import RunOutcome


@dataclass(frozen=True)
class Telling:
    """A run that is to be told.

    document: of `RunOutcome.to_dict`. before: that of the last good run before it, if there is one.
    """

    document: Mapping[str, Any]
    before: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, outcome: RunOutcome, before: RunOutcome | None) -> Telling:
        """Of a run and the last good one before it."""
        return cls(outcome.to_dict(), None if before is None else before.to_dict())
