"""Signals to end, while what is as good as done is finished."""

from __future__ import annotations

import signal
import threading
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Shield:
    """From `raise_` until it is left, signals to end are let pass; a context manager.

    For when results are in place, and only cleaning up is left. In threads other than the main one it does nothing:
    signals do not reach them.
    """

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Shield:
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def raise_(self) -> None:
        """Let signals pass from now on."""
        if threading.current_thread() is not threading.main_thread() or self._before:
            return
        for number in SIGNALS:
            # None: a handler that is not Python's could not be put back.
            if signal.getsignal(number) is not None:
                self._before[number] = signal.signal(number, signal.SIG_IGN)
