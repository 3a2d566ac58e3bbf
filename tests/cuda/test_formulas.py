"""The formulas give in a CUDA kernel (simulated) what they give on the CPU and what the definitions say."""

from __future__ import annotations

import math

import formula_kernels as kernels
import numpy as np
import pytest

from gpupif.kernels import hashing
from gpupif.measures import MEASURES

COUNTS = np.array([1, 1, 2, 5, 90], np.int64)
SIZES = np.array([1, 4, 8, 5, 100], np.int64)
PRIORS = np.array([0.5, 0.25, 0.001, 1.0, 0.9])


@pytest.mark.parametrize("accuracy", [1.0, 0.75, 0.0])
@pytest.mark.parametrize("name", MEASURES)
def test_measures(name, accuracy):
    out = np.empty(5)
    gains = np.array([0.0, 0.5, 1.0, 2.0, 3.0])
    kernels.measure_cells[1, 8](MEASURES[name].number, COUNTS, SIZES, PRIORS, accuracy, gains, out)
    posterior = accuracy * COUNTS / SIZES + (1 - accuracy) * PRIORS
    expected = {
        "cig": gains,
        "wcig": gains,
        "csf": abs(posterior - PRIORS),
        "posterior": posterior,
        "prior": PRIORS,
        "cohort_size": SIZES,
    }
    np.testing.assert_allclose(out, expected[name], rtol=1e-15)


@pytest.mark.parametrize("accuracy", [1.0, 0.75, 0.0])
def test_gain(accuracy):
    out = np.empty(5)
    kernels.gain_of_single_values[2, 2](COUNTS, SIZES, PRIORS, np.log2(PRIORS), accuracy, out)
    for count, size, prior, gain in zip(COUNTS, SIZES, PRIORS, out, strict=True):
        posterior = accuracy * count / size + (1 - accuracy) * prior
        absent = (1 - accuracy) * math.log2(1 - accuracy) * (1 - prior) if accuracy < 1 else 0.0
        assert gain == pytest.approx(max(0.0, posterior * math.log2(posterior / prior) + absent), abs=1e-15)


def test_hash():
    words = np.array([0, 1, 2**63, 2**64 - 1], np.uint64)
    out = np.empty(4, np.uint64)
    kernels.hash_words[1, 4](words, 3, out)
    assert out.tolist() == [int(hashing.mix_word(word, 3)) for word in words]
    assert len(set(out.tolist())) == 4
