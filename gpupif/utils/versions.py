"""Versions of packages that are installed under several names, one for each version of CUDA."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def installed_version(package: str) -> str | None:
    """Return the version of a package, or of its build for a version of CUDA; None if it is not installed."""
    for name in (package, f"{package}-cu13", f"{package}-cu12", f"{package}-cuda13x", f"{package}-cuda12x"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None
