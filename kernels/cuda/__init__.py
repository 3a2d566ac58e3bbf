"""Kernels of the CUDA engine: loops over rows and cohorts around the formulas that the CPU engine uses too.

All are grid-stride loops, so that any launch covers any size, and none has float atomics: sums run in a fixed order.
"""
