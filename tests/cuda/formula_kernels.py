"""CUDA kernels that do nothing but call the formulas: they must run and compile inside one."""

from __future__ import annotations

import math

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
        probability = posterior(counts[i], sizes[i], priors[i], accuracy)
        out[i] = cell_measure(measure, probability, priors[i], sizes[i], gains[i])


@cuda.jit
def gain_of_single_values(counts, sizes, priors, log2_priors, accuracy, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        log2_share = math.log2(counts[i]) - math.log2(sizes[i])
        probability = posterior(counts[i], sizes[i], priors[i], accuracy)
        term = divergence_term(probability, log2_share, priors[i], log2_priors[i], accuracy)
        out[i] = information_gain(term + divergence_absent(priors[i], accuracy))


@cuda.jit
def hash_words(words, position, out):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = mix_word(words[i], position)
