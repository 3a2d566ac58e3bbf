"""Whether all that is kept is as it was kept: checksums, and the record against the files."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...errors import TableReadError
from ...io.temporary_folder import PREFIX
from ...utils.display import Displayable, Heading, draw_line, draw_table
from ...utils.private_folder import OTHERS, OTHERS_WRITE
from ..outcome import KeptScores
from . import kept
from .record import Record

if TYPE_CHECKING:
    from rich.console import Console

HOLDS, PROBLEMS = 0, 3


@dataclass(frozen=True)
class Check:
    """What was checked: of what, how much of it, and what is wrong, one sentence each."""

    name: str
    checked: int
    problems: Sequence[str]


@dataclass(frozen=True)
class Verification(Displayable):
    """Whether a state folder is as its runs left it; made by `verify`. Prints as tables."""

    folder: str
    checks: Sequence[Check]

    @property
    def problems(self) -> list[str]:
        """All that is wrong, one sentence each."""
        return [problem for check in self.checks for problem in check.problems]

    @property
    def exit_code(self) -> int:
        """0 where all is as it was left, else 3."""
        return PROBLEMS if self.problems else HOLDS

    def draw(self, console: Console) -> None:
        headings = [Heading("checked", text=True), Heading("how many"), Heading("problems")]
        rows = [(check.name, check.checked, len(check.problems)) for check in self.checks]
        console.print(draw_table(f"What is kept in {self.folder}", headings, rows))
        for problem in self.problems:
            draw_line(console, problem, "red")


def check_state(state: Path) -> Verification:
    """Check all that is kept in a state folder: the record, kept scores, encoded parts, and who may read them.

    All files are read. A run may be on; the state is opened to be read only. Raises InputError where there is no
    record.
    """
    from ..table.table_state import PARTS, verify_state, verify_values

    runs = _runs(state)
    wrong, gone = list(_kept(state, runs.kept)), verify_values(state, runs.good)
    # A run that is on may have removed some meanwhile.
    now = _runs(state) if wrong or gone else runs
    wrong = [(number, problem) for number, problem in wrong if number in now.kept]
    gone = gone if now.good == runs.good else []
    checks = [
        Check("runs on record", runs.number, runs.problems),
        Check("kept scores", len(runs.kept), [*(problem for _, problem in wrong), *_of_no_run(state, runs)]),
    ]
    parts = len(list((state / PARTS).glob("*")))
    checks.append(Check("encoded parts", parts, [*verify_state(state), *gone]))
    places = list(_places(state))
    rights = list(_rights(state, places))
    return Verification(str(state), [*checks, Check("rights of files and folders", len(places), rights)])


class _Runs(NamedTuple):
    """The content of the record: how many runs, kept scores by run, which runs retention removed, the last good run,
    what is wrong with itself, and whether all was read.
    """

    number: int
    kept: Mapping[int, KeptScores]
    removed: Collection[int]
    good: int | None
    problems: Sequence[str]
    whole: bool


def _runs(state: Path) -> _Runs:
    """What the record says. Raises InputError where there is none."""
    try:
        with Record.open(state) as record, record.snapshot():
            problems = record.problems()
            if problems:
                return _Runs(0, {}, (), None, problems, False)
            heads = record.heads()
            several = {
                head["number"]: record.run(head["number"]).kept for head in heads if head["kept_path"] is not None
            }
            known = {number: one for number, one in several.items() if one is not None}
            removed = [head["number"] for head in heads if head["removed"] is not None]
            good = record.last_good()
            return _Runs(len(heads), known, removed, None if good is None else good.number, record.gaps(), True)
    except TableReadError as error:
        return _Runs(0, {}, (), None, [str(error)], False)


def _kept(state: Path, several: Mapping[int, KeptScores]) -> Iterator[tuple[int, str]]:
    """What is wrong with the kept scores that the record knows, and of which run."""
    for number, scores in several.items():
        folder = kept.find(state, number)
        if folder is None:
            yield number, f"{state / scores.path}: the kept scores of run {number} are gone."
        else:
            yield from ((number, problem) for problem in kept.check(folder, scores))


def _of_no_run(state: Path, runs: _Runs) -> Iterator[str]:
    """Say which folders of kept scores the record does not know, as far as it can be read.

    The record is first to forget a run: where retention was killed before the files went, the next run deletes them.
    """
    if runs.whole:
        for number, folder in kept.kept_numbers(state).items():
            if number not in runs.kept and number not in runs.removed:
                yield f"{folder}: holds scores of run {number}, of which the record has none. Remove it, or keep it."


def _places(state: Path) -> Iterator[Path]:
    """The state, and all that is in it; of folders that a run is filling only themselves, which let nobody in."""
    yield state
    for folder, folders, files in os.walk(state):
        yield from (Path(folder, name) for name in sorted(chain(folders, files)))
        folders[:] = [name for name in folders if not name.startswith((kept.STAGED, PREFIX))]


def _rights(state: Path, places: Sequence[Path]) -> Iterator[str]:
    """Say what others than the owner may read or write.

    The state itself may be a folder that was there before, and that others may look into: nothing in it is theirs to
    read.
    """
    for place in places:
        # A temporary file may be gone meanwhile; a link has no rights of its own.
        with contextlib.suppress(FileNotFoundError):
            refused = OTHERS_WRITE if place == state else OTHERS
            if not place.is_symlink() and place.lstat().st_mode & refused:
                kind = "700" if place.is_dir() else "600"
                mend = f"chmod {kind} {shlex.quote(str(place))}"
                yield f"{place}: others than its owner may read or change it. Run: {mend}"
