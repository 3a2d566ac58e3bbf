"""The CUDA engine: rows grouped into cohorts on the device, scored by Numba CUDA kernels."""
