"""Signals to end that wait."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from gpupif.utils.signals import SIGNALS, held_back


def send(*numbers):
    for number in numbers:
        os.kill(os.getpid(), number)


@pytest.fixture
def came():
    """The signals that came, in order; none of them raises."""
    numbers = []
    before = {number: signal.signal(number, lambda number, _: numbers.append(number)) for number in SIGNALS}
    yield numbers
    for number, handler in before.items():
        signal.signal(number, handler)


def test_they_wait_until_it_is_left(came):
    handlers = [signal.getsignal(number) for number in SIGNALS]
    with held_back():
        with held_back():
            send(signal.SIGTERM, signal.SIGINT, signal.SIGTERM)
        assert came == []
    assert sorted(came) == [signal.SIGINT, signal.SIGTERM]
    assert [signal.getsignal(number) for number in SIGNALS] == handlers


def test_they_come_after_an_error_too(came):
    def fail():
        with held_back():
            send(signal.SIGHUP)
            raise ValueError("within")

    with pytest.raises(ValueError, match="within"):
        fail()
    assert came == [signal.SIGHUP]


def test_what_they_raise_is_raised_when_it_is_left():
    done = []
    # In the background of a shell it is ignored.
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
def test_handlers_that_are_no_functions(came, ignored):
    signal.signal(signal.SIGHUP, ignored)
    with held_back():
        send(*([signal.SIGHUP] if ignored is signal.SIG_IGN else []))
    assert signal.getsignal(signal.SIGHUP) is ignored


def test_one_that_raises_while_handlers_are_put_back_leaves_none_without_effect(monkeypatch):
    """Each in turn comes right before its handler, or that of another one, is put back."""
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


def test_in_another_thread_it_does_nothing():
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

cli.CLEANING_SECONDS = 1
cli.app = interrupted
cli.main()
"""


@pytest.mark.subprocess
@pytest.mark.parametrize("where", ["in main", "after main"])
def test_a_process_that_hangs_while_it_cleans_up_ends(where):
    ended = subprocess.run([sys.executable, "-P", "-c", HANGING, where], timeout=30, check=False)
    assert ended.returncode == -signal.SIGALRM
