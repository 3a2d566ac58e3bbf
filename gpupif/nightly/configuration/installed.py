"""Whether what nightly runs need beside the package is installed."""

from __future__ import annotations

from importlib.util import find_spec

from ...errors import InputError


def check_installed() -> None:
    """Raise InputError unless there is pydantic, which checks configurations."""
    if find_spec("pydantic") is None:
        raise InputError("nightly runs need pydantic, which is not installed here: pip install 'gpupif[nightly]'.")
