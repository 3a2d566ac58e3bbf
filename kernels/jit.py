"""How kernels are compiled for the CPU: ahead of the loop, without the GIL, kept on disk between runs."""

from __future__ import annotations

from numba import njit

# nogil with plain loops: the engine's own threads hand each call a range, so no Numba threading layer is involved
# and a caller's threads (a Dask worker's, say) may score at the same time. error_model="numpy" drops zero-division
# checks from inner loops, which is also what a CUDA kernel does.
kernel = njit(cache=True, nogil=True, error_model="numpy")
