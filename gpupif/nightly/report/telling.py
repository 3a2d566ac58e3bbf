"""What every way to tell is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..outcome import RunOutcome, plain


@dataclass(frozen=True)
class Telling:
    """A run that is to be told.

    document: of `RunOutcome.to_dict`. before: that of the last good run before it, if there is one. changed: what
    `gpupif nightly diff` says of the two, as plain values, if it was asked.
    """

    document: Mapping[str, Any]
    before: Mapping[str, Any] | None = None
    changed: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, outcome: RunOutcome, before: RunOutcome | None, changed: Mapping[str, Any] | None = None) -> Telling:
        """Of a run and the last good one before it."""
        return cls(outcome.to_dict(), None if before is None else before.to_dict(), plain(changed))
