"""Threads of a grid on one thread of this machine: blocks whose threads wait for each other at barriers.

Each thread of such a block is a fiber (ucontext) with a stack of its own, which is left at a barrier and entered again
when all the others have come there. Without barriers one fiber runs all threads one after the other. The other half is
in threads.ll. What runs touches memory between pages that nobody may touch; if it does, it is left for good.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .errors import DeviceCodeError
from .memory import Memory, take

# A ucontext_t of glibc is 968 bytes on x86-64 and 4,560 on AArch64.
CONTEXT_BYTES = 8192
STACK_BYTES = 1 << 16
SA_SIGINFO, SA_ONSTACK = 4, 0x08000000
NOWHERE = -1
# Of the C library: for threads.ll, and what LLVM makes of loops and, on machines without it, of fused multiply-add. No
# function of its mathematics stands in for one of libdevice.
CALLED = ("swapcontext", "setcontext", "memcpy", "memmove", "memset", "fma")

# Puts threads, or blocks, in the order to run them in: their numbers.
Order = Callable[[int], "npt.NDArray[np.int64]"]


class Code(NamedTuple):
    """A kernel's machine code: addresses of `host.run` and `host.segv`, and whether it has barriers."""

    run: int
    segv: int
    barriers: bool


class TouchedError(Exception):
    """Memory was touched that no array has."""

    def __init__(self, address: int) -> None:
        super().__init__(address)
        self.address = address


class _State(ctypes.Structure):
    """The globals of threads.ll and machine.ll, by their names there."""

    _fields_ = (
        ("home", ctypes.c_char * CONTEXT_BYTES),
        ("own", ctypes.c_void_p),
        ("words", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("waiting", ctypes.c_int64),
        ("ended", ctypes.c_int64),
        ("fault", ctypes.c_int64),
        ("tid", ctypes.c_int32),
        ("ntid", ctypes.c_int32),
        ("ctaid", ctypes.c_int32),
        ("nctaid", ctypes.c_int32),
    )


class _Action(ctypes.Structure):
    """sigaction of Linux's C libraries."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_char * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


class _Stack(ctypes.Structure):
    """stack_t."""

    _fields_ = (("pointer", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


class _Context(ctypes.Structure):
    """How a ucontext_t begins."""

    _fields_ = (("flags", ctypes.c_ulong), ("link", ctypes.c_void_p), ("stack", _Stack))


_c = ctypes.CDLL(None)
_state = _State()
# Contexts and stacks of the fibers that there have been at once, used again.
_fibers: list[tuple[Any, Memory]] = []
# A handler cannot run on a stack that is full.
_handling = ctypes.create_string_buffer(STACK_BYTES)


def symbols() -> dict[str, int]:
    """Addresses of what machine code is linked with."""
    start = ctypes.addressof(_state)
    state = {f"host.{name}": start + getattr(_State, name).offset for name, _ in _State._fields_}
    return state | {name: ctypes.cast(getattr(_c, name), ctypes.c_void_p).value for name in CALLED}


def run_grid(code: Code, words: bytes, blocks: int, threads: int, order: Order) -> None:
    """Run a kernel's threads with these parameters; one call at a time.

    Raises TouchedError where memory is touched that no array has, DeviceCodeError where some threads of a block come
    to a barrier and others do not.
    """
    parameters = ctypes.create_string_buffer(words, len(words))
    _state.words = ctypes.addressof(parameters)
    _state.ntid, _state.nctaid, _state.fault = threads, blocks, NOWHERE
    with _faults_to(code.segv):
        if code.barriers:
            for block in order(blocks):
                _run_block(code, block * threads + np.arange(threads), order)
        else:
            _enter(_start(0, code), order(blocks * threads))


def _run_block(code: Code, numbers: npt.NDArray[np.int64], order: Order) -> None:
    fibers = [_start(place, code) for place in range(len(numbers))]
    ended, turns = 0, 0
    while ended < len(numbers):
        _state.waiting = _state.ended = 0
        for place in order(len(numbers)):
            _enter(fibers[place], numbers[place : place + 1])
        turns += 1
        ended = _state.ended
        if _state.waiting and ended:
            raise DeviceCodeError(
                f"only {_state.waiting} of the {len(numbers)} threads of a block come to its barrier number {turns}; "
                f"{ended} have ended"
            )


def _start(place: int, code: Code) -> int:
    """The context of a new fiber, before its first step."""
    if place == len(_fibers):
        _fibers.append((ctypes.create_string_buffer(CONTEXT_BYTES), take(STACK_BYTES)))
    context, stack = _fibers[place]
    address = ctypes.addressof(context)
    _c.getcontext(ctypes.c_void_p(address))
    begin = _Context.from_buffer(context)
    begin.link, begin.stack.pointer, begin.stack.size = None, stack.start, stack.size
    _c.makecontext(ctypes.c_void_p(address), ctypes.c_void_p(code.run), 0)
    return address


def _enter(fiber: int, numbers: npt.NDArray[np.int64]) -> None:
    """Run a fiber up to its next barrier or its end; numbers: the threads that it runs, if it has not begun."""
    _state.own, _state.numbers, _state.count = fiber, numbers.ctypes.data, len(numbers)
    _c.swapcontext(ctypes.byref(_state), ctypes.c_void_p(fiber))
    if _state.fault != NOWHERE:
        raise TouchedError(_state.fault % (1 << 64))


@contextlib.contextmanager
def _faults_to(handler: int) -> Iterator[None]:
    """Have a SIGSEGV leave the fiber that runs, in place of the process."""
    ours, before = _Action(handler=handler, flags=SA_SIGINFO | SA_ONSTACK), _Action()
    stack, stack_before = _Stack(ctypes.addressof(_handling), 0, STACK_BYTES), _Stack()
    _c.sigaltstack(ctypes.byref(stack), ctypes.byref(stack_before))
    _c.sigaction(signal.SIGSEGV, ctypes.byref(ours), ctypes.byref(before))
    try:
        yield
    finally:
        _c.sigaction(signal.SIGSEGV, ctypes.byref(before), None)
        _c.sigaltstack(ctypes.byref(stack_before), None)
