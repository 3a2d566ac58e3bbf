"""docs/measures.md is what the registry of measures says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers.checkout import ROOT

DOCS = ROOT / "docs"
pytestmark = pytest.mark.subprocess


def test_page_is_that_of_the_registry():
    """Where it is not: python docs/write_measures.py."""
    written = subprocess.run(
        [sys.executable, DOCS / "write_measures.py", "--print"], check=True, capture_output=True, encoding="utf-8"
    )
    assert written.stdout == (DOCS / "measures.md").read_text("utf-8")
