"""Numba kernels and the formulas they share, imported as `gpupif.kernels`.

They depend on numba, numpy and the standard library only.
"""
