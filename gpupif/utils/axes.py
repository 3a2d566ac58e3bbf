"""Axes of Matplotlib, which is imported when the first plot is drawn."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..errors import InputError
from .display import as_text

# Inches: the least width and height of a figure, what each named column adds, and what titles and labels take.
WIDTH, HEIGHT, EACH, AROUND = 7.0, 4.0, 0.25, 1.5
# The longest name on an axis, in characters.
LONGEST = 30
# Shapes that tell points apart without colour.
MARKERS = "os^Dv*P<X>"


def open_axes(ax: Any = None, down: int = 0, across: int = 0) -> Any:
    """Return `ax`, or the axes of a new figure with room for names. The current axes of pyplot are left alone.

    down, across: how many names stand on the vertical and on the horizontal axis. Raises InputError without Matplotlib,
    and if `ax` is no axes.
    """
    try:
        from matplotlib import pyplot
        from matplotlib.axes import Axes
    except ModuleNotFoundError as error:
        raise InputError(
            "plot: plots need Matplotlib, which is not installed here: pip install 'gpupif[plot]'."
        ) from error
    if ax is None:
        size = (max(WIDTH, AROUND + EACH * across), max(HEIGHT, AROUND + EACH * down))
        return pyplot.subplots(figsize=size, layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise InputError(f"ax: expected the axes of a plot of Matplotlib, got {type(ax).__name__}.")
    return ax


def ink(ax: Any) -> Any:
    """Return the colour of the text of axes, which stands out from their background, dark or light."""
    return ax.xaxis.label.get_color()


def label(name: Any) -> str:
    """Return a name or a value as Matplotlib shows it: cut, without control characters, and never as mathematics."""
    text = as_text(name)
    text = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    # A legend leaves out names that begin with an underscore.
    return ("\u2009" * text.startswith("_") + text).replace("$", r"\$")


def name_rows(ax: Any, names: Sequence[Hashable], title: str, xlabel: str) -> None:
    """Name the columns of a table from the top of axes down, and give the axes their titles."""
    ax.set_yticks(range(len(names)), labels=list(map(label, names)))
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set(title=title, xlabel=xlabel, ylabel="column")
