"""gpupif: privacy risk of every cell of a table, exact, from a tutorial's seven rows to a census.

Public names stand in `__init__.pyi`. They are imported when they are first used: pandas, pyarrow and numba take a
second, and only who scores waits for them.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def _import_kernels(folder):
    """Import the package in a folder elsewhere as `gpupif.kernels`."""
    spec = spec_from_file_location(f"{__name__}.kernels", folder / "__init__.py")
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Kernels are in this folder: installed there, or in a checkout by a link, by which type checkers and editors find them
# too. A copy of a checkout without links has them beside this folder.
if not (Path(__file__).parent / "kernels").is_dir():
    kernels = _import_kernels(Path(__file__).parent.parent / "kernels")
