"""Signals to end, while what is as good as done, or must not be left half done, is finished."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
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


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Signals to end that come within it are delivered when it is left; a context manager.

    For what an exception at any line must not leave half done, and takes a moment only. It may be nested. In threads
    other than the main one it does nothing: signals do not reach them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    holding = True
    # Without those that are not Python's, which could not be put back.
    before = {number: handler for number in SIGNALS if (handler := signal.getsignal(number)) is not None}

    def hold(number: int, _: object) -> None:
        if holding:
            came.append(number)
        else:
            # Another one raised while the handlers were put back, before the turn of this one.
            signal.signal(number, before[signal.Signals(number)])
            signal.raise_signal(number)

    try:
        for number in before:
            signal.signal(number, hold)
        yield
    finally:
        holding = False
        for number, handler in before.items():
            signal.signal(number, handler)
        for held in dict.fromkeys(came):
            signal.raise_signal(held)
