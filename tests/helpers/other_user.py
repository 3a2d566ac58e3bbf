"""Files and folders that another user planted."""

from __future__ import annotations

import os

import pytest

OTHER = 12345


def give_away(path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a path another user's: by its owner where root runs the tests, else by who this process says it is."""
    if os.getuid() == 0:
        os.chown(path, OTHER, OTHER, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
