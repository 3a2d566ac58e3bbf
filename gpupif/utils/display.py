"""What is found as text: tables for people, one JSON document for programs."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

# Columns of a text that is for no terminal.
WIDTH = 120


class Printed(ABC):
    """Something that prints as tables."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, text, lists and dictionaries, ready for JSON."""

    @abstractmethod
    def print(self, console: Console) -> None:
        """Draw it on a console of rich."""

    def to_json(self) -> str:
        """`to_dict` as one JSON document."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        out = StringIO()
        self.print(Console(file=out, width=WIDTH))
        return out.getvalue()
