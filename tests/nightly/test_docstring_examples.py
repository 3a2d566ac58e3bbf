"""The examples in what `help(gpupif.nightly)` shows."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["configuration.config", "configuration.new_config", "nightly_run"])
def test_the_examples_of_docstrings_are_right(module):
    tried = doctest.testmod(importlib.import_module(f"gpupif.nightly.{module}"))
    assert tried.attempted > 1
    assert tried.failed == 0
