"""Checks that all that is kept is as it was kept, `gpupif.nightly.verify`: checksums, and the record against files."""

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
from ..configuration.config import Config, find_runs
from ..run_outcome import KeptScores
from ..table.kept_table import PARTS, verify_state, verify_values
from .kept_scores import STAGED, KeptFolder, check
from .record import Record

if TYPE_CHECKING:
    from rich.console import Console

HOLDS, PROBLEMS = 0, 3


@dataclass(frozen=True)
class Check:
    """A check: the name of what was checked, how much of it there is, and one sentence for each problem."""

    name: str
    checked: int
    problems: Sequence[str]


@dataclass(frozen=True)
class Verification(Displayable):
    """The checks of a state folder, made by `verify`: whether it is as its runs left it. Prints as tables."""

    folder: str
    checks: Sequence[Check]

    @property
    def problems(self) -> list[str]:
        """All problems, one sentence each."""
        return [problem for part in self.checks for problem in part.problems]

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0 if there is no problem, else 3."""
        return PROBLEMS if self.problems else HOLDS

    def draw(self, console: Console) -> None:
        headings = [Heading("checked", text=True), Heading("how many"), Heading("problems")]
        rows = [(part.name, part.checked, len(part.problems)) for part in self.checks]
        console.print(draw_table(f"What is kept in {self.folder}", headings, rows))
        for problem in self.problems:
            draw_line(console, problem, "red")


def verify(config: str | os.PathLike[str] | Config, *, overrides: Sequence[str] = ()) -> Verification:
    """Check all that the runs of a configuration keep: the record, kept scores, kept files, and who may read them.

    All of it is read and held against its checksums, and the record against the files; the table itself is not read. A
    run may be on. Runs that were changed in the record, or deleted from it, are problems. What it cannot notice is the
    work of somebody who also makes the checksums anew, or sets back the count of runs: whoever can write the files can
    do both. Copies kept elsewhere tell.

    Parameters
    ----------
    config, overrides:
        As of `gpupif.nightly.run`; only its table [run] is read.

    Returns
    -------
    Verification
        ``.problems``, one sentence each, also of a record that is damaged; ``.checks``, of what there are how many;
        ``.exit_code``: 0, or 3 where there are problems. Prints as tables; ``.to_dict()``, ``.to_json()``.

    Raises
    ------
    InputError
        A configuration that is wrong; no record where it says, or one of another version.

    """
    state = find_runs(config, overrides).state
    runs = _runs(state)
    wrong, gone = list(_kept(state, runs.kept)), verify_values(state, runs.good)
    # A run that is on may have removed some of the files meanwhile.
    now = _runs(state) if wrong or gone else runs
    wrong = [(number, problem) for number, problem in wrong if number in now.kept]
    gone = gone if now.good == runs.good else []
    checks = [
        Check("runs on record", runs.number, runs.problems),
        Check("kept scores", len(runs.kept), [*(problem for _, problem in wrong), *_of_no_run(state, runs)]),
        Check("kept files", len(list((state / PARTS).glob("*"))), [*verify_state(state), *gone]),
    ]
    places = list(_places(state))
    rights = list(_rights(state, places))
    return Verification(str(state), [*checks, Check("rights of files and folders", len(places), rights)])


class _Runs(NamedTuple):
    """The content of the record.

    problems: a sentence for each. number: how many runs, removed ones too. kept: the kept scores, by run. removed: the
    runs that retention removed. good: the last good run. is_whole: whether all of the record could be read.
    """

    problems: Sequence[str]
    number: int = 0
    kept: Mapping[int, KeptScores] = {}
    removed: Collection[int] = ()
    good: int | None = None
    is_whole: bool = False


def _runs(state: Path) -> _Runs:
    """Return the content of the record. Raises InputError if there is none."""
    try:
        with Record.open(state) as record, record.snapshot():
            problems = record.problems()
            if problems:
                number = 0
                # A damaged file may not list its runs; the problems above are reported all the same.
                with contextlib.suppress(TableReadError):
                    number = len(record.heads())
                return _Runs(problems, number)
            heads, good = record.heads(), record.last_good()
            runs = [record.run(head["number"]) for head in heads if head["kept_path"] is not None]
            return _Runs(
                record.gaps(),
                len(heads),
                {run.number: run.kept for run in runs if run.kept is not None},
                [head["number"] for head in heads if head["removed"] is not None],
                None if good is None else good.number,
                is_whole=True,
            )
    except TableReadError as error:
        return _Runs([str(error)])


def _kept(state: Path, kept: Mapping[int, KeptScores]) -> Iterator[tuple[int, str]]:
    """Yield what is wrong with the kept scores that the record knows, and of which run."""
    for number, scores in kept.items():
        folder = KeptFolder(state, number).find()
        if folder is None:
            yield number, f"{state / scores.path}: the kept scores of run {number} are gone."
        else:
            yield from ((number, problem) for problem in check(folder, scores))


def _of_no_run(state: Path, runs: _Runs) -> Iterator[str]:
    """Yield a sentence for each folder of kept scores that the record does not know, if all of it could be read.

    The record is first to forget a run: if retention was killed before it deleted the files, the next run deletes them.
    """
    for folder in KeptFolder.find_all(state) if runs.is_whole else ():
        number = folder.number
        if folder.final.exists() and number not in runs.kept and number not in runs.removed:
            yield f"{folder.final}: holds scores of run {number}, of which the record has none. Remove it, or keep it."


def _places(state: Path) -> Iterator[Path]:
    """Yield the state and all that is in it, except the content of folders that a run is filling: nobody can enter."""
    yield state
    for folder, folders, files in os.walk(state):
        yield from (Path(folder, name) for name in sorted(chain(folders, files)))
        folders[:] = [name for name in folders if not name.startswith((STAGED, PREFIX))]


def _rights(state: Path, places: Sequence[Path]) -> Iterator[str]:
    """Yield a sentence for each place that others than the owner may read or write.

    The state itself may be a folder that was there before, and that others may look into: they can read nothing in it.
    """
    for place in places:
        # A temporary file may be gone meanwhile; a link has no rights of its own.
        with contextlib.suppress(FileNotFoundError):
            refused = OTHERS_WRITE if place == state else OTHERS
            if not place.is_symlink() and place.lstat().st_mode & refused:
                kind = "700" if place.is_dir() else "600"
                mend = f"chmod {kind} {shlex.quote(str(place))}"
                yield f"{place}: others than its owner may read or change it. Run: {mend}"
