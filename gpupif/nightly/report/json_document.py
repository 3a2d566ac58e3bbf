"""A run as one JSON document, for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...utils.display import json_text
from .figures import figures
from .telling import Telling


def document(telling: Telling) -> dict[str, Any]:
    """What is known of a run, with its figures beside those of the last good run, and what changed between the two."""
    now, before = figures(telling.document), {} if telling.before is None else figures(telling.before)
    beside: Mapping[str, Any] = {
        name: {
            "value": figure.value,
            "unit": figure.unit,
            "before": before[name].value if name in before else None,
        }
        for name, figure in now.items()
    }
    return {**telling.document, "figures": beside}


def text(telling: Telling) -> str:
    """`document` as text."""
    return f"{json_text(document(telling))}\n"
