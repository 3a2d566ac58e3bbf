"""Independence decided by whole numbers: what floats call nearly nothing is nothing only where these say so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

# Information below so many bits may be none at all.
NEARLY_NONE = 1e-6


def as_often_as_parts(joint: npt.NDArray[np.int64], parts: Sequence[npt.NDArray[np.int64]], total: int) -> bool:
    """Whether each combination occurs just as often as its parts make it.

    joint: counts of combinations; parts: of each part of a combination its own count; total: of all.
    """
    exact: Any = np.int64 if total ** len(parts) < 2**63 else object
    expected = np.ones(len(joint), exact)
    for part in parts:
        expected = expected * part.astype(exact)
    found = joint.astype(exact) * total ** (len(parts) - 1)
    return bool((found == expected).all())
