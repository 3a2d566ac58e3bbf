"""Public names of a package that are imported on first use, listed once, in the stub beside its `__init__.py`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path
from typing import Any


def names_of_stub(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` for a package, made from the imports in its stub.

    Type checkers read the stub too. package: `__name__` of the package. file: `__file__` of the package. A name is a
    module (`from . import datasets as datasets`) or a name in a module (`from .summary import Summary as Summary`).
    """
    places: dict[str, tuple[str, bool]] = {}
    for node in ast.parse(Path(file).with_suffix(".pyi").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            places |= {alias.name: (module, node.module is None) for alias in node.names}

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        module, is_module = places[name]
        value = import_module(f"{module}.{name}") if is_module else getattr(import_module(module), name)
        # The next access finds the value without this function.
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(places), sorted(places)
