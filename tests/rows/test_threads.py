"""Threads that do tasks: in order, and the first error of all."""

from __future__ import annotations

import threading
import time

import pytest

from gpupif.errors import InputError
from gpupif.rows.threads import Workers, default_threads


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_workers_keep_the_order_of_the_tasks(threads):
    seen = set()

    def square(number):
        seen.add(threading.get_ident())
        return number * number

    with Workers(threads) as workers:
        assert workers.run(square, [(number,) for number in range(100)]) == [n * n for n in range(100)]
        assert workers.run(square, []) == []
    assert 1 <= len(seen) <= threads


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_in_a_task_is_raised_and_ends_the_rest(threads):
    done = []

    def fail_at_3(number):
        if number == 3:
            raise IndexError("third")
        done.append(number)

    with Workers(threads) as workers:
        with pytest.raises(IndexError, match="third"):
            workers.run(fail_at_3, [(number,) for number in range(10_000)])
        assert workers.run(abs, [(-1,)]) == [1]
    if threads == 1:
        assert done == [0, 1, 2]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_made_in_parallel_are_taken_in_order(threads):
    taken, made = [], []

    def make(number):
        made.append(number)
        # No thread is ahead of the others by more than what it made.
        assert number - len(taken) <= threads
        time.sleep(0.001 * (number % 3))
        return number * number

    with Workers(threads) as workers:
        workers.run_in_turn(make, taken.append, [(number,) for number in range(50)])
        workers.run_in_turn(make, taken.append, [])
    assert taken == [number * number for number in range(50)]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("failing", ["make", "take"])
def test_an_error_ends_the_taking_of_results_in_order(threads, failing):
    taken = []

    def fail(what, number):
        if what == failing and number == 10:
            raise IndexError("tenth")
        return number

    with Workers(threads) as workers:
        with pytest.raises(IndexError, match="tenth"):
            workers.run_in_turn(
                lambda number: fail("make", number),
                lambda number: taken.append(fail("take", number)),
                [(number,) for number in range(1000)],
            )
        assert taken == list(range(len(taken)))
        assert len(taken) <= 10
        assert workers.run(abs, [(-1,)]) == [1]


def test_ranges_cover_all_rows_once():
    with Workers(3) as workers:
        for size in (0, 1, 16_384, 100_000, 10_000_001):
            ranges = workers.ranges(size)
            assert [row for edges in ranges for row in edges][1:-1:2] == [start for start, _ in ranges[1:]]
            assert (ranges[0][0], ranges[-1][1]) == (0, size)


@pytest.mark.parametrize("text", ["0", "two", "-1", ""])
def test_a_bad_number_of_threads_is_refused(monkeypatch, text):
    monkeypatch.setenv("GPUPIF_NUM_THREADS", text)
    with pytest.raises(InputError, match="GPUPIF_NUM_THREADS"):
        default_threads()
    monkeypatch.setenv("GPUPIF_NUM_THREADS", "7")
    assert default_threads() == 7


def test_the_error_of_the_first_failing_task_is_raised():
    def fail(number):
        time.sleep(0.02 if number == 0 else 0)
        raise ValueError(str(number))

    with Workers(4) as workers, pytest.raises(ValueError, match=r"^0$"):
        workers.run(fail, [(number,) for number in range(4)])
