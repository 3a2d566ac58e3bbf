"""Public functions called under options of `gpupif.config`."""

from __future__ import annotations

import gpupif

OPTIONS = ("device", "gpu_grouping", "memory_limit", "temp", "progress", "threads")


def configured(function, *given, **arguments):
    """What a function returns, those of its keyword arguments that are options of `gpupif.config` given to that."""
    options = {name: arguments.pop(name) for name in OPTIONS if name in arguments}
    with gpupif.config(**options):
        return function(*given, **arguments)
