"""Kernels of the CUDA engine: loops over rows and cohorts around the formulas that the CPU engine uses, too.

All loops are grid-stride loops, so that any launch covers any size. No kernel adds floats atomically: all sums are sums
of whole numbers, which do not depend on the order of threads.
"""
