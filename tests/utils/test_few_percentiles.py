"""Percentiles of few numbers, which are sorted, have the bits of those that are found digit by digit."""

from __future__ import annotations

import numpy as np
import pytest

from gpupif.utils import percentiles as module
from gpupif.utils.percentiles import ONCE, percentiles

WANTED = [0, 33.3, 50, 95, 99, 100]
SPECIAL = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.5]


@pytest.mark.parametrize("seed", range(60))
def test_few_numbers_have_the_same_percentiles(monkeypatch, seed):
    draw = np.random.default_rng(seed)
    size = int(draw.integers(0, 40))
    numbers = [draw.normal(size=size), draw.integers(-2, 3, size).astype(float), draw.choice(SPECIAL, size)][seed % 3]
    multiplicities = draw.integers(0, 4, size) if seed % 2 and size > 1 else ONCE
    cut = size // 2

    def chunks():
        return iter([(numbers[part], multiplicities[part]) for part in (slice(cut), slice(cut, None))])

    found = percentiles(chunks, WANTED)
    monkeypatch.setattr(module, "FEW_NUMBERS", -1)
    np.testing.assert_array_equal(np.array(found).view(np.int64), np.array(percentiles(chunks, WANTED)).view(np.int64))
