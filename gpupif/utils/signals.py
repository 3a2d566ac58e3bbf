"""Signals that ask the process to end. They raise at a safe moment, wait for a short block, or are ignored."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Packages in whose code no exception may be raised. Python code takes the locks of the compiler: after an exception
# between taking a lock and the block that releases it, every thread that compiles waits for ever. A module whose import
# is cut short stays half imported.
UNSAFE_PACKAGES = {"llvmlite", "numba", "importlib", "weakref"}
# Seconds until a signal is sent again that came while no exception could be raised.
RETRY_SECONDS = 0.001
# Seconds in which the process has to end after `Interrupted` is raised. The exception may leave a lock of a thread pool
# taken, and Python waits for it for ever, even after `main`. Then SIGALRM ends the process: stored state survives that.
CLEANING_SECONDS = 60.0


class Interrupted(BaseException):
    """A signal that asks the process to end, as an exception that no library catches.

    number: the number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def raise_interruptions() -> None:
    """Set handlers so that each signal to end raises `Interrupted` in the main thread, as soon as that is safe.

    After it is raised, further signals are ignored, so that none of them stops the cleaning up. If Python swallows the
    exception, as in `__del__`, the signal is sent again.
    """
    before = sys.unraisablehook

    def send_swallowed_again(swallowed: sys.UnraisableHookArgs) -> None:
        if isinstance(swallowed.exc_value, Interrupted):
            _handle_signals()
            _send_later(swallowed.exc_value.number)
        else:
            before(swallowed)

    sys.unraisablehook = send_swallowed_again
    _handle_signals()


def _handle_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise `Interrupted` if an exception is safe in the code of `frame`, else arrange to raise it later."""
    if frame is not None and frame.f_code is _send_again.__code__:
        frame = frame.f_back
    unsafe = None
    for caller in callers(frame):
        package = str(caller.f_globals.get("__name__") or "").partition(".")[0]
        if package in UNSAFE_PACKAGES or caller.f_code.co_name == "__del__":
            unsafe = caller
    if unsafe is not None:
        _interrupt_at_return(unsafe, number)
    elif frame is not None and _changes_lock(frame):
        _send_later(number)
    else:
        _raise(number)


def _changes_lock(frame: FrameType) -> bool:
    """Return whether a frame may have taken or released a lock, while the block that undoes it is not yet entered."""
    if frame.f_code is threading.Condition.wait.__code__:
        # The variable is set right before the block that takes the lock of the condition again.
        return "gotit" not in frame.f_locals
    return frame.f_code.co_name in ("__enter__", "__exit__", "_release_save", "_acquire_restore")


def _raise(number: int) -> None:
    """Raise `Interrupted`, after setting further signals to be ignored."""
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, CLEANING_SECONDS)
    raise Interrupted(number)


def _interrupt_at_return(unsafe: FrameType, number: int) -> None:
    """Raise `Interrupted` when a frame returns, so that the call raises it within the blocks of the caller.

    A timer would miss the short time between compiling two kernels. If the signal is held back or ignored by then, it
    is sent again in place of the exception.
    """
    trace_before, own_before = sys.gettrace(), unsafe.f_trace

    def at_return(_: FrameType, event: str, __: object) -> Any:
        if event != "return":
            return at_return
        sys.settrace(trace_before)
        unsafe.f_trace = own_before
        if signal.getsignal(number) is _interrupt:
            _raise(number)
        signal.raise_signal(number)
        return None

    unsafe.f_trace = at_return
    sys.settrace(lambda *_: None)


def _send_later(number: int) -> None:
    """Set a timer that sends this process the signal after `RETRY_SECONDS`."""
    signal.signal(signal.SIGALRM, partial(_send_again, number))
    signal.setitimer(signal.ITIMER_REAL, RETRY_SECONDS)


def _send_again(number: int, *_: object) -> None:
    """Send this process the signal; the timer calls it."""
    signal.raise_signal(number)


def callers(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and the frames that called it, the innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


class Shield:
    """A context manager that ignores signals to end, from the call of `raise_` to the end of the block.

    It is for the time after results are complete, when only cleaning up is left. In other threads than the main thread
    it does nothing: signals do not reach them.
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
def first_interrupt() -> Iterator[Callable[[], bool]]:
    """Note the first Ctrl-C while the block runs, in place of its exception; the second one acts as before.

    Yields a function that returns whether Ctrl-C came. In other threads than the main thread Ctrl-C is not noted:
    signals do not reach them.
    """
    came = False
    before = signal.getsignal(signal.SIGINT)

    def note(*_: object) -> None:
        nonlocal came
        came = True
        signal.signal(signal.SIGINT, before)

    # A handler that is no function of Python ignores the signal, or could not be put back.
    noted = callable(before) and threading.current_thread() is threading.main_thread()
    if noted:
        signal.signal(signal.SIGINT, note)
    try:
        yield lambda: came
    finally:
        if noted and signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Hold signals to end back while the block runs, and deliver them at the end of the block.

    It is for a short block that no exception may leave half done. Blocks may be nested. In other threads than the main
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
