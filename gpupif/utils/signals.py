"""Signals that ask the process to end: raised at a safe moment, held back in a short block, or let pass."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Packages that an exception must not leave half way. Locks of the compiler are taken by Python code: an exception
# between taking one and the block that gives it back leaves it taken, and every thread that compiles waits for ever.
# A module whose import is cut short stays half imported. An exception in a weak reference's callback is swallowed.
UNSAFE_PACKAGES = {"llvmlite", "numba", "importlib", "weakref"}
# Seconds in which the process has to end once `Interrupted` is raised. The exception may leave a lock of a thread pool
# taken, for which Python waits for ever, also after `main`: then SIGALRM ends the process. Kept state bears a kill.
CLEANING_SECONDS = 60.0


class Interrupted(BaseException):
    """A signal that asks the process to end, under a name that no library catches.

    number: the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def raise_interruptions() -> None:
    """Have each signal to end raise `Interrupted` in the main thread, as soon as that is safe.

    Once it is raised, further signals are ignored, so that none stops the cleaning up.
    """
    for number in SIGNALS:
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise `Interrupted` if the code of `frame` may be left by an exception, else when a caller of it goes on."""
    place = _safe_caller(frame)
    if place is not None and place is not frame:
        _send_when_reached(place, number)
        return
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, CLEANING_SECONDS)
    raise Interrupted(number)


def _safe_caller(frame: FrameType | None) -> FrameType | None:
    """Return the innermost of a frame and its callers in which an exception leaves no lock taken and is not swallowed.

    Frames of `UNSAFE_PACKAGES` and of any `__del__` are unsafe, and so is everything that they call. `__enter__` and
    `__exit__` are unsafe themselves: a lock may be taken while the block of `with` is not yet entered.
    """
    place = frame
    if frame is not None and frame.f_code.co_name in ("__enter__", "__exit__"):
        place = frame.f_back
    for caller in callers(frame):
        package = caller.f_globals.get("__name__", "").partition(".")[0]
        if package in UNSAFE_PACKAGES or caller.f_code.co_name == "__del__":
            place = caller.f_back
    return place


def _send_when_reached(place: FrameType, number: int) -> None:
    """Send this process a signal when `place`, a frame of a caller, comes to its next line or returns.

    A timer would miss the short time between two kernels that are compiled. The signal is sent rather than raised:
    by then it may be held back or ignored.
    """
    trace_before, place_before = sys.gettrace(), place.f_trace

    def send(*_: object) -> None:
        sys.settrace(trace_before)
        place.f_trace = place_before
        signal.raise_signal(number)

    place.f_trace = send
    sys.settrace(lambda *_: None)


def callers(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and the frames that called it, the innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


class Shield:
    """A context manager that ignores signals to end from `raise_` until its block is left.

    It is for results that are in place, when only cleaning up is left. In other threads than the main thread it does
    nothing: signals do not reach them.
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
        """Ignore signals to end from now on."""
        if threading.current_thread() is not threading.main_thread() or self._before:
            return
        for number in SIGNALS:
            # A handler that is not Python's reads as None and could not be put back.
            if signal.getsignal(number) is not None:
                self._before[number] = signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Hold signals to end back while the block runs, and deliver them when it is left; a context manager.

    It is for a short block that no exception may leave half done. It may be nested. In other threads than the main
    thread it does nothing: signals do not reach them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    holding = True
    # Handlers that are not Python's read as None and could not be put back.
    before = {number: handler for number in SIGNALS if (handler := signal.getsignal(number)) is not None}

    def hold(number: int, _: object) -> None:
        if holding:
            came.append(number)
        else:
            # The handler of another signal raised while handlers were put back, before this signal's was.
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
