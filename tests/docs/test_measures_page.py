"""The tables that docs/write_measures.py writes are what gpupif says of itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers.checkout import ROOT

DOCS = ROOT / "docs"
pytestmark = pytest.mark.subprocess


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        "reference/measures.md",
        "explanation/combinations.md",
        "reference/nightly.md",
        "reference/treatments.md",
        "reference/command-line.md",
    ],
)
def test_the_page_of_measures_is_generated_from_the_registry(page):
    """If this fails, run `python docs/write_measures.py`."""
    command = [sys.executable, DOCS / "write_measures.py", "--print", page]
    written = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    assert written.stdout == (DOCS / page).read_text("utf-8")
