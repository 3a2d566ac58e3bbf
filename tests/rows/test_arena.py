"""The working memory of a run: arrays in use never share memory, and what is given up is used again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupif.rows.threads import ALIGNMENT, Arena

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(0, 3_000), st.sampled_from(["u1", "u4", "f8"])),
        st.tuples(st.just("drop"), st.integers(0, 20), st.just("")),
    ),
    max_size=40,
)


@given(STEPS)
def test_arrays_in_use_keep_their_contents(steps):
    arena, held = Arena(20_000), []
    for number, (step, size, dtype) in enumerate(steps):
        if step == "take":
            array = arena.empty(size, dtype)
            assert (array.shape, array.dtype) == ((size,), np.dtype(dtype))
            array[:] = number
            held.append((number, array[::2] if size % 3 == 0 else array))
        elif held:
            held.pop(size % len(held))
        for written, array in held:
            assert (array == written).all()


def test_memory_of_released_arrays_is_used_again():
    arena = Arena(1 << 20)
    first, second = arena.empty((100, 8), np.float64), arena.empty(1_000, np.uint32)
    place = first.ctypes.data
    assert place % ALIGNMENT == 0
    view = first[10:]
    del first
    assert arena.empty(10, np.uint8).ctypes.data > second.ctypes.data, "a view of the first is still in use"
    del view
    assert arena.empty(100, np.float64).ctypes.data == place


@pytest.mark.parametrize("size", [0, 100])
def test_arrays_beyond_the_arena_come_from_elsewhere(size):
    arena = Arena(size)
    array = arena.empty((1_000, 3), np.int64)
    array[:] = 7
    assert array.sum() == 21_000


def test_arrays_come_from_elsewhere_if_the_reservation_is_refused():
    arena = Arena(1 << 60)
    array = arena.empty(10, np.int64)
    array[:] = 1
    assert array.flags.owndata
    assert array.tolist() == [1] * 10
