"""CUDA kernels that do nothing but call the formulas: they must run and compile inside one."""

from __future__ import annotations

from numba import cuda

from gpupif.kernels.formulas import (
    cell_measure,
    divergence_absent,
    divergence_term,
    information_gain,
    posterior,
)
from gpupif.kernels.hashing import mix_word


@cuda.jit
def measure_cells(measure, counts, sizes, priors, accuracy, gains, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = cell_measure(measure, counts[i], sizes[i], priors[i], accuracy, gains[i])


@cuda.jit
def gain_of_single_values(counts, sizes, priors, accuracy, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        term = divergence_term(posterior(counts[i], sizes[i], priors[i], accuracy), priors[i])
        out[i] = information_gain(term + divergence_absent(priors[i], accuracy))


@cuda.jit
def hash_words(words, position, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = mix_word(words[i], position)
