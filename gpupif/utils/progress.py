"""Progress bars on a terminal, and the message, once for each process, that kernels are being compiled."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from ..errors import printable
from .config import resources
from .display import draw_line


class Reporter:
    """A progress bar of a run; a context manager.

    visible: whether the bar is shown. Default: the value of `gpupif.config`, "auto" being a terminal.
    """

    def __init__(self, visible: bool | None = None) -> None:
        asked = resources().progress if visible is None else visible
        self.visible = sys.stderr.isatty() if asked is None else asked
        self._quiet = asked is False
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Reporter:
        if self.visible:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            console = _console()
            if not (console.is_interactive or console.is_jupyter):
                # In a file, and on a terminal that moves no cursor, nothing but an empty line would be written.
                return self
            self._bar = Progress(
                TextColumn("{task.description:8}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[unit]}"),
                _rate_column(),
                TimeRemainingColumn(),
                console=console,
            )
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            # Without a task the last refresh erases the bar, where the cursor is: a transient bar ends its line first
            # and goes back to it, which a recorded terminal keeps as a line.
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._bar.stop()

    def say(self, text: str) -> None:
        """Print a line that stays, on a terminal or not; print nothing if `gpupif.config` turns progress off."""
        if self._bar is not None:
            draw_line(self._bar.console, f"gpupif: {text}")
        elif not self._quiet:
            print(printable(f"gpupif: {text}"), file=sys.stderr)

    def stage(self, name: str, total: int | None, unit: str) -> None:
        """Begin a new stage. total: its number of units; None: unknown. unit: the noun for a unit, such as "rows"."""
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(printable(name), total=total, unit=unit)

    def expect(self, total: int) -> None:
        """Change the number of units that the stage is expected to have."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=total)

    def rename(self, name: str) -> None:
        """Change the name of the stage, which continues."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=printable(name))

    def advance(self, amount: int = 1) -> None:
        """Add a number of finished units to the stage."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, amount)


def _console() -> Any:
    """Return a console of rich on standard error, on which the end of a bar begins no new line."""
    from rich.console import Console

    class Line(Console):
        def line(self, count: int = 1) -> None:
            """Write nothing: rich ends the line of a bar so."""

    return Line(stderr=True)


def _rate_column() -> Any:
    """Return a column with the units a second, which is empty until the speed is known."""
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{short(speed)}{task.fields['unit']}/s" if speed else "", style="progress.data.speed")

    return Rate()


def short(number: float) -> str:
    """Return a number with a prefix for its unit, such as "1.2 M "."""
    for limit, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.1f} {prefix} "
    return f"{number:.0f} "


_said = False


@contextlib.contextmanager
def announce_compilation() -> Iterator[None]:
    """Print once, on standard error, that Numba compiles, if it does so while the block runs.

    Compiling takes seconds, and only the first run does it.
    """
    from numba.core import event

    from gpupif.kernels.cache import CACHE_FOLDER

    quiet = resources().progress is False

    class _Announce(event.Listener):
        def on_start(self, _: object) -> None:
            global _said
            if not _said and not quiet:
                _said = True
                said = f"gpupif: compiling for this machine, for a few seconds; {_kept(CACHE_FOLDER)}."
                print(printable(said), file=sys.stderr)

        def on_end(self, _: object) -> None:
            """Do nothing: the end of compiling is not announced."""

    with event.install_listener("numba:compile", _Announce()):
        yield


def _kept(folder: str) -> str:
    """Return the words that say whether compiled kernels are kept, and in which folder."""
    if folder:
        return f"once for each kind of question, as it is kept in {os.path.dirname(folder)}"
    return "every time, as there is no folder to keep it in: set XDG_CACHE_HOME to one that only you can write to"
