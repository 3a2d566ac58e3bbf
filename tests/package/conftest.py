"""What the tests of the package as a whole leave behind them: nothing."""

from __future__ import annotations

import pytest

from tests.helpers.checkout import nodes_of


@pytest.fixture(scope="package", autouse=True)
def modules_forgotten():
    """The syntax trees of all modules take memory and time of the garbage collector: no longer than they are used."""
    yield
    nodes_of.cache_clear()
