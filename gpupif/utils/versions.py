"""Versions of packages, whichever of their names they were installed under."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed_version(package: str) -> str | None:
    """Version of a package, or of its build for one CUDA version; None where there is none."""
    for name in (package, f"{package}-cu13", f"{package}-cu12", f"{package}-cuda13x", f"{package}-cuda12x"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None
