"""Figures of Matplotlib in tests: drawn without a screen, and what their axes show."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def closed_figures():
    """Close all figures after a test."""
    yield
    pyplot.close("all")


def names_on(axis):
    """The names on an axis, in order."""
    return [text.get_text() for text in axis.get_ticklabels()]


def points(ax, label):
    """The points of a line with a label in the legend: an array (points, 2)."""
    lines = [line for line in ax.lines if line.get_label() == label]
    assert len(lines) == 1
    return np.column_stack(lines[0].get_data())


def labels(ax):
    """The labels of the legend."""
    return [text.get_text() for text in ax.get_legend().get_texts()]
