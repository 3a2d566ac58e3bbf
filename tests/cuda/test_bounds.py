"""That a run in the simulator checks the bounds of all arrays: of the device's, of shared ones, in all functions."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config, cuda, float64

from gpupif.kernels.jit import kernel
from tests.helpers.gpu.numpy_device import SimulatedLibrary
from tests.helpers.gpu.without_gpu import need_simulator

need_simulator()

pytestmark = pytest.mark.simulator


@kernel
def item(array, place):
    return array[place]


@cuda.jit
def read(array, places, out):
    out[0] = array[places[0]]


@cuda.jit
def read_in_a_function(arrays, places, out):
    out[0] = item(arrays[0], places[0])


@cuda.jit
def read_shared(places, out):
    shared = cuda.shared.array(3, float64)
    out[0] = shared[places[0]]


@pytest.mark.parametrize(
    ("launched", "before"), [(read, [np.ones(3)]), (read_in_a_function, [(np.ones(3),)]), (read_shared, [])]
)
def test_a_kernel_that_reads_beyond_the_end_is_caught(launched, before):
    assert config.BOUNDSCHECK, "functions within kernels are checked with NUMBA_BOUNDSCHECK=1 only"
    library = SimulatedLibrary()
    library.launch(launched, 1, *before, np.array([2]), np.zeros(1))
    with pytest.raises(IndexError):
        library.launch(launched, 1, *before, np.array([3]), np.zeros(1))
