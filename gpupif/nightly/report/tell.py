"""Tells what a run came to, in each way that the configuration asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...errors import GpupifError, OutputError
from ...io.write import check_parent, write_text
from .. import log
from ..configuration.settings import TellSettings
from ..outcome import RunOutcome
from . import json_document, junit, markdown, prometheus, webhook
from .telling import Telling

# A path of the configuration as a file.
Resolve = Callable[[str], Path]
# A way to tell: says a run as the settings ask, and returns what kept it from that, one sentence each.
Way = Callable[[Telling, TellSettings, Resolve], Sequence[str]]


def to_file(key: str, text: Callable[[Telling, Path], str]) -> Way:
    """The way to tell by a file; key: of the settings, which has its path. text: what is in it."""

    def write(telling: Telling, settings: TellSettings, resolve: Resolve) -> Sequence[str]:
        path = getattr(settings, key)
        if path is not None:
            file = resolve(path)
            if file.exists() and not file.is_file():
                raise OutputError(f"{file}: expected the name of a file, got what is none.")
            check_parent(file, file)
            write_text(text(telling, file), file, overwrite=True, private=True)
        return ()

    return write


# By key of the settings. A new way is a key there, and its entry here.
WAYS: Mapping[str, Way] = {
    "json_file": to_file("json_file", lambda telling, file: json_document.text(telling)),
    "markdown": to_file("markdown", lambda telling, file: markdown.text(telling)),
    "junit": to_file("junit", lambda telling, file: junit.text(telling)),
    "prometheus": to_file("prometheus", prometheus.text),
    "webhooks": lambda telling, settings, resolve: webhook.tell(telling, settings),
}


def tell(
    outcome: RunOutcome,
    before: RunOutcome | None,
    settings: TellSettings,
    resolve: Resolve,
    redact: Callable[[str], str],
) -> list[str]:
    """Tell a run in every way that is asked for; what kept any of them from it, one sentence each, also logged.

    before: the last good run before it. resolve: a path of the configuration as a file. redact: a text without secrets.
    """
    telling = Telling.of(outcome, before)
    problems: list[str] = []
    for key, way in WAYS.items():
        try:
            problems += way(telling, settings, resolve)
        except (GpupifError, OSError) as error:
            problems.append(f"tell.{key}: {error}")
        except Exception as error:
            # A fault of this package; the other ways still have to tell.
            problems.append(f"tell.{key}: could not be told ({type(error).__name__}).")
    told = [redact(problem) for problem in problems]
    for problem in told:
        log.warn("not told", problem)
    return told
