"""Progress on a terminal, and the one-time word that kernels are being compiled."""

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
    """Shows how far a run is; silent unless `visible`. A context manager.

    visible: True or False; None: what `gpupif.config` says.
    """

    def __init__(self, visible: bool | None = None) -> None:
        asked = resources().progress if visible is None else visible
        self.visible = sys.stderr.isatty() if asked is None else asked
        self._quiet = asked is False
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Reporter:
        if self.visible:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description:8}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[unit]}"),
                _rate_column(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, text: str) -> None:
        """A line that stays, whether there is a terminal or not; none where no progress is to be shown."""
        if self._bar is not None:
            draw_line(self._bar.console, f"gpupif: {text}")
        elif not self._quiet:
            print(printable(f"gpupif: {text}"), file=sys.stderr)

    def stage(self, name: str, total: int | None, unit: str) -> None:
        """A new stage begins, of `total` units (None: unknown)."""
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(printable(name), total=total, unit=unit)

    def expect(self, total: int) -> None:
        """The stage is now thought to have so many units."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=total)

    def rename(self, name: str) -> None:
        """The stage goes on, with something else in it."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=printable(name))

    def advance(self, amount: int = 1) -> None:
        """So many more units of the stage are done."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, amount)


def _rate_column() -> Any:
    """A column with units a second, as soon as that is known."""
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{short(speed)}{task.fields['unit']}/s" if speed else "", style="progress.data.speed")

    return Rate()


def short(number: float) -> str:
    """A number with a prefix of its unit: 1.2 M."""
    for limit, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.1f} {prefix} "
    return f"{number:.0f} "


_said = False


@contextlib.contextmanager
def announce_compilation() -> Iterator[None]:
    """Say once, on standard error, when Numba starts to compile: that is slow, and only the first run does it."""
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
            """Nothing to say."""

    with event.install_listener("numba:compile", _Announce()):
        yield


def _kept(folder: str) -> str:
    """For how long what is compiled is kept, and where."""
    if folder:
        return f"once for each kind of question, as it is kept in {os.path.dirname(folder)}"
    return "every time, as there is no folder to keep it in: set XDG_CACHE_HOME to one that only you can write to"
