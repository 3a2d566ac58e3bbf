"""What is asked of past runs: `history`, `diff` and `verify` of `gpupif.nightly`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .comparison.run_diff import LISTED, RunDiff, diff_runs
from .configuration.config import Config, load_run_settings, loaded, resolve
from .record.run_history import History, read_history
from .record.verification import Verification, check_state


def history(config: str | os.PathLike[str] | Config, *, overrides: Sequence[str] = ()) -> History:
    """All runs of a configuration, in order; also while a run is on.

    Parameters
    ----------
    config, overrides:
        As of `gpupif.nightly.run`; only its table [run] is read.

    Returns
    -------
    History
        ``.runs``, in order, those that retention removed too: number, started (UTC, ISO 8601), status, rows, pif_95
        (bits, against the worst attacker), gates_passed, gates_failed, gates_not_applied (those with a limit that had
        no run to compare with), seconds, why (it did not end well: its error, or the names of the gates that do not
        hold). Prints as a table; ``.to_frame()``, ``.to_csv()``, ``.to_dict()``, ``.to_json()``.

    Raises
    ------
    InputError
        A configuration that is wrong; no record where it says, or one of another version.
    TableReadError
        A record that is damaged or cannot be read; a run that is not as it was recorded.

    """
    return read_history(_asked(config, overrides).state)


def diff(
    config: str | os.PathLike[str] | Config,
    run_a: int | str | None = None,
    run_b: int | str | None = None,
    *,
    most: int = LISTED,
    overrides: Sequence[str] = (),
) -> RunDiff:
    """What changed from one run to another: columns, gates, classes, rows, and the cells whose risk rose most.

    Rows and cells are found in the scores that both runs kept (``keep.scores``). Values of the table are listed where
    ``run.show_values`` is set.

    Parameters
    ----------
    config, overrides:
        As of `gpupif.nightly.run`; only its table [run] is read.
    run_a, run_b:
        The earlier and the later run: numbers, "last" (of those that came to results) or "good" (the last of which all
        gates hold, before the later one). Default: the two last that came to results. With one of them that is
        compared with the last.
    most:
        How many cells and rows are listed.

    Returns
    -------
    RunDiff
        ``.inputs`` (files), ``.schema``, ``.table`` and ``.columns`` (figures that changed, each with its unit),
        ``.gates``, ``.scores`` (newly unique rows and the cells whose risk rose most, in units of the measure; None
        where that cannot be said), ``.missing`` (why, and which setting it takes). Prints as tables; ``.to_dict()``,
        ``.to_json()``.

    Raises
    ------
    InputError
        A configuration that is wrong; a run that never was, was removed, or came to no results; fewer than two runs.
    TableReadError
        A record, or kept scores, that are damaged.
    OutputError
        No room for temporary files.

    """
    asked = _asked(config, overrides)
    return diff_runs(asked.state, run_a, run_b, most=most, temp=asked.temp, show_values=asked.show_values)


def verify(config: str | os.PathLike[str] | Config, *, overrides: Sequence[str] = ()) -> Verification:
    """Check all that the runs of a configuration keep: the record, kept scores, encoded parts, and who may read them.

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
    return check_state(_asked(config, overrides).state)


class _Asked(NamedTuple):
    """What of a configuration says where its runs are, and what of them may be shown."""

    state: Path
    temp: Path | None
    show_values: bool


def _asked(config: str | os.PathLike[str] | Config, overrides: Sequence[str]) -> _Asked:
    if isinstance(config, Config):
        folder, wanted = config.folder, loaded(config, overrides).settings.run
    else:
        folder, wanted = load_run_settings(config, overrides)
    temp = None if wanted.temp is None else resolve(folder, wanted.temp)
    return _Asked(resolve(folder, wanted.state), temp, wanted.show_values)
