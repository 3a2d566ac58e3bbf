"""The history of a configuration: all of its runs in short, `gpupif.nightly.history`."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from io import StringIO
from typing import TYPE_CHECKING, Any

from ...errors import printable
from ...utils.display import Displayable, Heading, draw_line, draw_table, plural
from ..comparison.figures import pif_of
from ..configuration.config import Config, find_runs
from ..run_outcome import Verdict, plain, why
from .record import Record
from .run_documents import RunDocument

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console


@dataclass(frozen=True)
class PastRun:
    """A run in short.

    pif_95: bits, against the worst attacker. gates_failed: those that are unknown too. gates_with_limit_not_applied:
    those with a limit that had no run to compare with, also if another limit was applied and they passed or failed; a
    gate counts once. seconds: of all stages; None where there was none. why: it did not end well, its error or the
    names of the gates that do not hold. removed: when retention removed all else of it; None of a run that is there.
    """

    number: int
    started: str
    status: str
    rows: int | None
    pif_95: float | None
    gates_passed: int
    gates_failed: int
    seconds: float | None
    why: str = ""
    removed: str | None = None
    gates_with_limit_not_applied: int = 0


@dataclass(frozen=True)
class History(Displayable):
    """The runs of a state folder, in order. Prints as a table, and why runs did not end well."""

    folder: str
    runs: Sequence[PastRun]

    def to_csv(self) -> str:
        """Return the runs as CSV with a line of names: text `printable`, what is not known empty."""
        out = StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([field.name for field in fields(PastRun)])
        for run in self.runs:
            writer.writerow([printable(value) if isinstance(value, str) else value for value in vars(run).values()])
        return out.getvalue()

    def to_frame(self) -> pd.DataFrame:
        """Return the runs as a pandas DataFrame, by number."""
        import pandas as pd

        names = [field.name for field in fields(PastRun)]
        return pd.DataFrame([vars(run) for run in self.runs], columns=names).set_index("number")

    def draw(self, console: Console) -> None:
        headings = [
            Heading("run", show=str),
            Heading("began (UTC)", text=True),
            Heading("status", text=True),
            Heading("rows", show=_known("{:,}")),
            Heading("PIF 95, bits", show=_known("{:.3f}")),
            Heading("gates passed"),
            Heading("failed"),
            Heading("limit not applied"),
            Heading("seconds", show=_known("{:,.1f}")),
        ]
        rows = [
            (
                *(run.number, run.started[:19].replace("T", " "), run.status if run.removed is None else "removed"),
                *(run.rows, run.pif_95, run.gates_passed, run.gates_failed),
                *(run.gates_with_limit_not_applied, run.seconds),
            )
            for run in self.runs
        ]
        console.print(draw_table(f"{len(rows)} {plural(len(rows), 'run')} in {self.folder}", headings, rows))
        for run in self.runs:
            if run.why:
                # Below the table, in which it would be a narrow column of many lines.
                draw_line(console, f"Run {run.number} {run.status}: {run.why}")


def _known(form: str) -> Any:
    """Return a function that formats a number, and leaves out an unknown one."""
    return lambda value: "" if value is None else form.format(value)


def history(config: str | os.PathLike[str] | Config, *, overrides: Sequence[str] = ()) -> History:
    """Return all runs of a configuration, in order; also while a run is on.

    Parameters
    ----------
    config, overrides:
        As of `gpupif.nightly.run`; only its table [run] is read.

    Returns
    -------
    History
        ``.runs``, in order, those that retention removed too: number, started (UTC, ISO 8601), status, rows, pif_95
        (bits, against the worst attacker), gates_passed, gates_failed, gates_with_limit_not_applied (those with a
        limit that had no run to compare with), seconds, why (it did not end well: its error, or the names of the gates
        that do not hold). Prints as a table; ``.to_frame()``, ``.to_csv()``, ``.to_dict()``, ``.to_json()``.

    Raises
    ------
    InputError
        A configuration that is wrong; no record where it says, or one of another version.
    TableReadError
        A record that is damaged or cannot be read; a run that is not as it was recorded.

    """
    state = find_runs(config, overrides).state
    with Record.open(state) as record:
        return History(str(state), [*map(_past_run, record.documents())])


def _past_run(document: RunDocument) -> PastRun:
    """Return a run in short. Of a removed run only the facts that stay are known."""
    facts, gates = document.facts, document.gates
    failed = [gate.name for gate in gates if gate.verdict.holds_back]
    seconds = facts.get("seconds")
    return PastRun(
        number=facts["number"],
        started=facts["started"],
        status=facts["status"],
        rows=facts["rows"],
        pif_95=pif_of(facts.get("summary"), 95),
        gates_passed=sum(gate.verdict is Verdict.PASSED for gate in gates),
        gates_failed=len(failed),
        seconds=math.fsum(seconds.values()) if seconds else None,
        why=plain(why(facts.get("error", ""), failed, facts.get("release"))),
        removed=facts.get("removed"),
        gates_with_limit_not_applied=sum(bool(gate.not_applied) for gate in gates),
    )
