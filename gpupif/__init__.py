"""gpupif: privacy risk of every cell of a table, exact, from a tutorial's seven rows to a census.

The public names are in `__init__.pyi`, and imported on first use: pandas, pyarrow and numba take a second to import,
for which only those wait who score.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from .utils.lazy_names import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)


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
