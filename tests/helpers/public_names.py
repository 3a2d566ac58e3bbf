"""The public names of gpupif, in all its modules of names."""

from __future__ import annotations

import inspect
from types import ModuleType

import gpupif

NAMESPACES = ("treatments", "models", "information", "results", "errors")


def public_names() -> dict[str, object]:
    """Return what each public name stands for: `score`, `models.k_anonymity`, ..."""
    found = {name: getattr(gpupif, name) for name in gpupif.__all__}
    for namespace in NAMESPACES:
        module = getattr(gpupif, namespace)
        names = [name for name in dir(module) if not name.startswith("_")]
        found |= {f"{namespace}.{name}": getattr(module, name) for name in names}
    return {name: one for name, one in found.items() if not isinstance(one, ModuleType)}


def public_functions() -> dict[str, object]:
    """Return the public functions of gpupif, without the helpers of `gpupif.errors`."""
    return {
        name: one
        for name, one in public_names().items()
        if inspect.isfunction(one) and one.__module__.startswith("gpupif") and not name.startswith("errors.")
    }
