"""The log of a nightly run: events on the logger `gpupif.nightly`, which the command writes to standard error.

An event has a name, a line for people and fields for programs. Neither ever has a value of the table. As a library
gpupif attaches no handler; who wants the events takes them from the logger.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

from ..errors import printable

LOG = logging.getLogger("gpupif.nightly")


def say(event: str, text: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event. text: one line for people. fields: values for programs, as JSON has them."""
    LOG.log(level, "%s", text, extra={"event": event, "fields": fields})


class Lines(logging.Formatter):
    """A format of events as lines, without secrets; tracebacks, which may quote values, are left out.

    kind: "text" or "json". redact: returns a text without secrets.
    """

    def __init__(self, kind: Literal["text", "json"], redact: Callable[[str], str]) -> None:
        super().__init__()
        self._as_json = kind == "json"
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without a line break."""
        time = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        level, text = record.levelname.lower(), self._redact(record.getMessage())
        if not self._as_json:
            return f"{time} {level} {printable(text)}"
        fields = {key: self._clean(value) for key, value in getattr(record, "fields", {}).items()}
        facts = {"time": time, "level": level, "event": getattr(record, "event", record.name), "message": text}
        return json.dumps({**fields, **facts})

    def _clean(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, list | tuple):
            return [self._clean(own) for own in value]
        return self._redact(str(value))


@contextmanager
def logged_to_stderr(
    kind: Literal["text", "json"], redact: Callable[[str], str], quiet: bool = False
) -> Iterator[None]:
    """Write events to standard error within the block; if quiet, only events that somebody should see to.

    kind, redact: see `Lines`.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(kind, redact))
    level, propagate = LOG.level, LOG.propagate
    LOG.addHandler(handler)
    LOG.setLevel(logging.WARNING if quiet else logging.INFO)
    LOG.propagate = False
    try:
        yield
    finally:
        LOG.removeHandler(handler)
        LOG.setLevel(level)
        LOG.propagate = propagate
