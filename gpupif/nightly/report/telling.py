"""What every way to tell is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Telling:
    """A run that is to be told.

    document: of `RunOutcome.to_dict`. before: that of the last good run before it, if there is one. changed: what
    `gpupif nightly diff` says of the two, if it was asked. resolve: a path of the configuration as a file.
    """

    document: Mapping[str, Any]
    before: Mapping[str, Any] | None
    changed: Mapping[str, Any] | None
    resolve: Callable[[str], Path]
