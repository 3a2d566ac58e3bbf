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


def say(event: str, text: str, **fields: Any) -> None:
    """Log an event; text: of it in one line. fields: what programs may want of it, as JSON has it."""
    _log(logging.INFO, event, text, fields)


def warn(event: str, text: str, **fields: Any) -> None:
    """As `say`, of what somebody should see to."""
    _log(logging.WARNING, event, text, fields)


def fail(event: str, text: str, **fields: Any) -> None:
    """As `say`, of what ends a run."""
    _log(logging.ERROR, event, text, fields)


def _log(level: int, event: str, text: str, fields: dict[str, Any]) -> None:
    LOG.log(level, "%s", text, extra={"event": event, "fields": fields})


class Lines(logging.Formatter):
    """An event as one line, without secrets; tracebacks, which may quote values, are left out.

    kind: "text" or "json". redact: a text without secrets.
    """

    def __init__(self, kind: Literal["text", "json"], redact: Callable[[str], str]) -> None:
        super().__init__()
        self._as_json = kind == "json"
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
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
    """Within it, events are written to standard error, if quiet only those somebody should see to; for the command.

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
