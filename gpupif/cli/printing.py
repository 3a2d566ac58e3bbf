"""Printing of the command line, without errors: lines, JSON documents, and the sentence if a signal ends a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from .._version import __version__
from ..errors import printable


class Interruption:
    """The sentence that is printed if a signal ends the command now; commands change it as they go.

    left: what the command leaves, the second half of the sentence.
    """

    NOTHING = "nothing was written"
    RESUMABLE = "what is done is kept, and the same command goes on with it"
    left = NOTHING


interruption = Interruption()


def say(line: str) -> None:
    """Print a line of text, none of which acts on a terminal."""
    typer.echo(printable(line))


def as_document(facts: Mapping[str, Any]) -> str:
    """Return facts as one JSON document, which names the version of gpupif."""
    from ..utils.display import json_text

    return json_text({"gpupif": __version__, **facts})
