"""Numba kernels and the formulas they share. Depends on numba, numpy and math only; imported as `gpupif.kernels`."""
