"""What of the kernels only kernels call, for tests."""

from __future__ import annotations

from typing import Any

from gpupif.kernels.jit import kernel


def from_python(subroutine: Any) -> Any:
    """A subroutine that can be called from Python too."""
    return kernel(subroutine.py_func)
