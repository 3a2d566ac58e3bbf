"""What of the kernels only kernels call, for tests."""

from __future__ import annotations

from typing import Any

import pytest

from gpupif.kernels.jit import Kernel, kernel


def from_python(subroutine: Any) -> Any:
    """A subroutine that can be called from Python too."""
    return kernel(subroutine.py_func)


def run_in_python(patch: pytest.MonkeyPatch, module: Any, **constants: Any) -> None:
    """Have all kernels and subroutines of a module run as Python, with other values of some of its constants."""
    for name, value in vars(module).copy().items():
        if isinstance(value, Kernel) and value.py_func.__module__ == module.__name__:
            patch.setattr(module, name, value.py_func)
    for name, constant in constants.items():
        patch.setattr(module, name, constant)
