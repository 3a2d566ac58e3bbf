"""Signals to end raise when no lock stays taken, are held back, and are ignored."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from functools import partial

import llvmlite.binding as llvm
import pytest

from gpupif.utils.signals import SIGNALS, Interrupted, callers, held_back, raise_interruptions


def send(*numbers):
    for number in numbers:
        os.kill(os.getpid(), number)


@pytest.fixture
def came():
    """Return the list of signals that came, in order; no signal raises."""
    numbers = []
    before = {number: signal.signal(number, lambda number, _: numbers.append(number)) for number in SIGNALS}
    yield numbers
    for number, handler in before.items():
        signal.signal(number, handler)


def test_signals_wait_until_the_block_is_left(came):
    handlers = [signal.getsignal(number) for number in SIGNALS]
    with held_back():
        with held_back():
            send(signal.SIGTERM, signal.SIGINT, signal.SIGTERM)
        assert came == []
    assert sorted(came) == [signal.SIGINT, signal.SIGTERM]
    assert [signal.getsignal(number) for number in SIGNALS] == handlers


def test_held_signals_come_after_an_error_too(came):
    def fail():
        with held_back():
            send(signal.SIGHUP)
            raise ValueError("within")

    with pytest.raises(ValueError, match="within"):
        fail()
    assert came == [signal.SIGHUP]


def test_the_exception_of_a_signal_is_raised_when_the_block_is_left():
    done = []
    # A process in the background of a shell ignores SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def work():
        with held_back():
            send(signal.SIGINT)
            done.append("all")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("ignored", [signal.SIG_IGN, signal.SIG_DFL])
def test_handlers_that_are_no_functions_are_restored(came, ignored):
    signal.signal(signal.SIGHUP, ignored)
    with held_back():
        send(*([signal.SIGHUP] if ignored is signal.SIG_IGN else []))
    assert signal.getsignal(signal.SIGHUP) is ignored


def test_an_exception_while_restoring_handlers_loses_no_handler(monkeypatch):
    """Each signal in turn comes right before its handler, or the handler of another signal, is put back."""
    real = signal.signal
    for number in SIGNALS:
        for turn in range(len(SIGNALS)):
            calls = []

            def put(which, handler, number=number, turn=turn, calls=calls):
                calls.append(which)
                if len(calls) == len(SIGNALS) + 1 + turn:
                    signal.raise_signal(number)
                return real(which, handler)

            def interrupt(number, _):
                raise InterruptedError(number)

            before = {one: real(one, interrupt) for one in SIGNALS}
            try:
                with monkeypatch.context() as patch:
                    patch.setattr(signal, "signal", put)
                    with pytest.raises(InterruptedError), held_back():
                        pass
                for one in SIGNALS:
                    with pytest.raises(InterruptedError):
                        signal.raise_signal(one)
            finally:
                for one, handler in before.items():
                    real(one, handler)


def test_holding_back_signals_in_another_thread_has_no_effect():
    handlers = []

    def work():
        with held_back():
            handlers.extend(signal.getsignal(number) for number in SIGNALS)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(number) for number in SIGNALS]


HANGING = """
import os, signal, sys, threading
from gpupif.cli import main as cli
from gpupif.utils import signals

lock = threading.Lock()
lock.acquire()

def interrupted(*_, **__):
    try:
        signal.raise_signal(signal.SIGTERM)
    finally:
        if sys.argv[1] == "in main":
            lock.acquire()
        else:
            threading.Thread(target=lock.acquire).start()

signals.CLEANING_SECONDS = 1
cli.app = interrupted
cli.main()
"""


@pytest.mark.subprocess
@pytest.mark.parametrize("where", ["in main", "after main"])
def test_a_process_that_hangs_in_its_clean_up_is_ended(where):
    ended = subprocess.run([sys.executable, "-P", "-c", HANGING, where], timeout=30, check=False)
    assert ended.returncode == -signal.SIGALRM


@pytest.fixture
def raising():
    """Make signals to end raise `Interrupted`, as on the command line. A call of the result sets the handlers again."""
    before, hook = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)}, sys.unraisablehook
    yield raise_interruptions
    sys.unraisablehook = hook
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number, handler in before.items():
        signal.signal(number, handler)


def is_free(lock):
    """Return whether another thread can take a lock."""
    taken = []

    def take():
        taken.append(lock.acquire(timeout=5))
        if taken[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return taken[0]


def until_interrupted(work):
    """Call `work` again and again until a signal ends that."""
    with pytest.raises(Interrupted):  # noqa: PT012
        while True:
            work()


def test_a_signal_while_llvmlite_takes_its_lock_leaves_the_lock_free(raising):
    lock, moment, count = llvm.ffi.lib._lock, 0, 0

    def acquired():
        nonlocal count
        count += 1
        if count == moment:
            os.kill(os.getpid(), signal.SIGTERM)

    def nothing():
        pass

    lock.register(acquired, nothing)
    try:
        for turn in range(200):
            # Parsing and freeing a module takes the lock a dozen times.
            moment = 1 + turn % 20
            raising()
            count = 0
            until_interrupted(lambda: llvm.parse_assembly("define i32 @f() { ret i32 1 }"))
            assert count >= moment
            assert is_free(lock._lock)
    finally:
        lock.unregister(acquired, nothing)


class Ending:
    """An object whose end calls a function; what that raises Python swallows."""

    def __init__(self, work):
        self.work = work

    def __del__(self):
        self.work()


def values():
    """A generator that is left before its end."""
    try:
        yield 1
    finally:
        send(signal.SIGTERM)
        time.sleep(0.001)


def drop_generator():
    made = values()
    next(made)
    del made


def drop_object():
    Ending(partial(send, signal.SIGTERM))


def drop_finalized():
    weakref.finalize(Ending(list), partial(send, signal.SIGTERM))


def drop_referred():
    ended = Ending(list)
    reference = weakref.ref(ended, lambda _: send(signal.SIGTERM))
    del ended
    return reference


def collect_garbage():
    def collected(*_):
        gc.callbacks.remove(collected)
        send(signal.SIGTERM)

    gc.callbacks.append(collected)
    gc.collect(0)


@pytest.mark.parametrize("swallow", [drop_object, drop_generator, drop_finalized, drop_referred, collect_garbage])
def test_a_signal_is_not_lost_if_python_swallows_its_exception(raising, swallow):
    turns = []

    def work():
        if not turns:
            swallow()
        turns.append(None)
        time.sleep(0.001)

    raising()
    until_interrupted(work)


@pytest.fixture
def compile_something():
    """A function of an unsafe package: a signal comes in its middle."""
    code = "def compile_something(send, work):\n    send()\n    work.append('all')\n    return work"
    found = {"__name__": "numba.core"}
    exec(code, found)
    return partial(found["compile_something"], partial(send, signal.SIGTERM))


def in_finally(call, given_back):
    try:
        call()
    finally:
        given_back()


def returned(call, given_back):
    with contextlib.ExitStack() as stack:
        stack.callback(given_back)
        return call()


def last_of_a_block(call, given_back):
    with contextlib.ExitStack() as stack:
        stack.callback(given_back)
        call()


def in_a_list(call, given_back):
    try:
        _ = [call() for _ in range(2)]
        _ = 1
    finally:
        given_back()


@pytest.mark.parametrize("caller", [in_finally, returned, last_of_a_block, in_a_list])
def test_callers_of_the_compiler_release_what_they_took(raising, compile_something, caller):
    """The exception leaves the call after the compiler is done."""
    raising()
    done, given_back = [], []
    with pytest.raises(Interrupted):
        caller(partial(compile_something, done), partial(given_back.append, 1))
    assert (done, given_back) == (["all"], [1])


def test_a_signal_in_a_frame_without_a_module_is_raised(raising):
    raising()
    with pytest.raises(Interrupted):
        exec("send(number)\npass", {"__name__": None, "send": send, "number": signal.SIGTERM})


@pytest.mark.parametrize("then", ["held back", "ignored"])
def test_a_signal_delayed_by_the_compiler_may_then_be_held_back_or_ignored(raising, then):
    raising()
    done = []
    code = "def compile_something(work):\n    work()\n"
    found = {"__name__": "numba.core"}
    exec(code, found)

    def work():
        send(signal.SIGTERM)
        if then == "ignored":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def all_of_it():
        with held_back():
            found["compile_something"](work)
            done.append("all")

    if then == "ignored":
        found["compile_something"](work)
        time.sleep(0.01)
        return
    with pytest.raises(Interrupted):
        all_of_it()
    assert done == ["all"]


def test_a_signal_while_a_lock_is_taken_leaves_the_lock_free(raising):
    """`Condition.__enter__` is Python code: an exception in it comes before the block that releases the lock."""

    class Lock:
        lock = threading.Lock()

        def __enter__(self):
            self.lock.acquire()
            os.kill(os.getpid(), signal.SIGTERM)

        def __exit__(self, *_):
            self.lock.release()

    def work():
        with Lock():
            time.sleep(0.001)

    raising()
    until_interrupted(work)
    assert is_free(Lock.lock)


@pytest.mark.parametrize("make", [threading.Lock, threading.RLock])
def test_a_signal_while_a_condition_releases_its_lock_leaves_the_lock_in_order(raising, make):
    """Handlers of signals run where a Python function begins and where a C function returns."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        waits = any(caller.f_code is threading.Condition.wait.__code__ for caller in callers(frame))
        if waits and event in ("call", "c_return"):
            calls += 1
            if calls == moment:
                sys.setprofile(None)
                signal.getsignal(signal.SIGTERM)(signal.SIGTERM, frame)

    moment = total = 0
    while moment <= total:
        condition = threading.Condition(make())
        raise_interruptions()
        calls = 0
        try:
            with condition:
                sys.setprofile(count)
                condition.wait(0.01)
                sys.setprofile(None)
                until = time.monotonic() + 10
                while moment and time.monotonic() < until:
                    pass
            assert moment == 0
        except Interrupted:
            assert moment
        finally:
            sys.setprofile(None)
        total = total or calls
        assert condition.acquire(blocking=False)
        condition.release()
        moment += 1
    assert total >= 6


def test_signals_are_ignored_after_the_first(raising):
    raising()
    cleaned = []

    def work():
        try:
            send(signal.SIGTERM)
        finally:
            send(*SIGNALS)
            cleaned.append("all")

    with pytest.raises(Interrupted) as raised:
        work()
    assert raised.value.number == signal.SIGTERM
    assert cleaned == ["all"]


def test_a_held_back_signal_is_raised_at_the_end_of_the_block(raising):
    raising()
    done = []

    def work():
        with held_back():
            send(signal.SIGHUP)
            done.append("all")
        done.append("more")

    with pytest.raises(Interrupted):
        work()
    assert done == ["all"]
