"""Memory that runs out at any call, and progress that is added up."""

from __future__ import annotations

import numpy as np


class Counted:
    """NumPy whose k-th call fails for want of memory; once, or from then on."""

    def __init__(self, k, once):
        self.k = k
        self.once = once
        self.calls = 0

    def __getattr__(self, name):
        function = getattr(np, name)

        def counted(*arguments, **named):
            self.calls += 1
            if self.calls == self.k or (self.calls > self.k and not self.once):
                raise MemoryError
            return function(*arguments, **named)

        return counted


class Total:
    """Progress, added up."""

    def __init__(self):
        self.cells = 0

    def advance(self, cells):
        self.cells += cells
