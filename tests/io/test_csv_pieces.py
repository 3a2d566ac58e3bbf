"""Large CSV files are read piece by piece, and hold what Arrow finds in them, whatever stands in them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.errors import TableReadError
from gpupif.io import csv_pieces
from gpupif.io.read import read_table


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Pieces of a few lines, and few texts at a time."""
    for name, size in {"SMALLEST": 0, "PIECE": 64, "LONGEST": 40, "FEW_TEXTS": 2, "MOST_TEXTS": 4}.items():
        monkeypatch.setattr(csv_pieces, name, size)


def by_arrow(path, monkeypatch, **options):
    with monkeypatch.context() as patched:
        patched.setattr("gpupif.io.csv_files.read_pieces", lambda *_: None)
        return read_table(path, **options)
