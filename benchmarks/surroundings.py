"""The folder for results, and a description of the machine that a benchmark ran on."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gpupif.cli.info import describe

RESULTS = Path(__file__).parent / "results"


def surroundings(packages: Sequence[str]) -> dict[str, Any]:
    """Return the machine, and the versions of packages, as results name them."""
    machine = {name: fact for name, fact in describe().items() if name in ("CPU", "memory", "GPU")}
    return {
        "machine": {**machine, "system": platform.platform()},
        "packages": {name: version(name) for name in packages},
    }
