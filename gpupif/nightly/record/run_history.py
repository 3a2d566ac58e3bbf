"""All runs of a state folder at a glance."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import printable
from ...io.documents import parse_json
from ...utils.display import Displayable, Heading, draw_line, draw_table, json_value, plural
from ..comparison.summary_figures import pif_of
from ..outcome import Verdict, plain, why
from .record import Record
from .record_rows import RunRows, from_text, gates_of

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console


@dataclass(frozen=True)
class PastRun:
    """A run in a word.

    pif_95: bits, against the worst attacker. gates_failed: those that are unknown too. gates_not_applied: those with a
    limit that had no run to compare with, also if another limit was applied and they passed or failed. seconds: of all
    stages; None where there was none. why: it did not end well, its error or the names of the gates that do not hold.
    removed: when retention removed all else of it; None of a run that is there.
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
    gates_not_applied: int = 0


@dataclass(frozen=True)
class History(Displayable):
    """The runs of a state folder, in order. Prints as a table, and why runs did not end well."""

    folder: str
    runs: Sequence[PastRun]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, text, lists and dictionaries, ready for JSON."""
        runs = [{name: json_value(value) for name, value in vars(run).items()} for run in self.runs]
        return {"folder": self.folder, "runs": runs}

    def to_csv(self) -> str:
        """Return the runs as CSV with a line of names: text `printable`, what is not known empty."""
        out = StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([field.name for field in fields(PastRun)])
        for run in self.runs:
            writer.writerow([printable(value) if isinstance(value, str) else value for value in vars(run).values()])
        return out.getvalue()

    def to_frame(self) -> pd.DataFrame:
        """The runs as a pandas DataFrame, by number."""
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
                *(run.number, _day_and_time(run.started), run.status if run.removed is None else "removed"),
                *(run.rows, run.pif_95, run.gates_passed, run.gates_failed, run.gates_not_applied, run.seconds),
            )
            for run in self.runs
        ]
        console.print(draw_table(f"{len(rows)} {plural(len(rows), 'run')} in {self.folder}", headings, rows))
        for run in self.runs:
            if run.why:
                # Below the table, in which it would be a narrow column of many lines.
                draw_line(console, f"Run {run.number} {run.status}: {run.why}")


def _known(form: str) -> Any:
    """How a number is shown that may not be known."""
    return lambda value: "" if value is None else form.format(value)


def _day_and_time(text: str) -> str:
    """A time to the second."""
    return text[:19].replace("T", " ")


def read_history(state: Path) -> History:
    """Return the runs of a state folder, also while one is on; opened to be read only.

    Raises as `Record.open`, and TableReadError where a run is not as it was recorded.
    """
    with Record.open(state) as record:
        return History(str(state), [*map(_past_run, record.rows())])


def _past_run(rows: RunRows) -> PastRun:
    head, gates = {name: from_text(value) for name, value in rows.run.items()}, gates_of(rows)
    failed = [gate.name for gate in gates if gate.verdict.holds_back]
    summary = None if head["summary"] is None else parse_json(head["summary"])
    seconds = [float(seconds) for _, seconds in rows.parts["stages"]]
    return PastRun(
        number=head["number"],
        started=head["started"],
        status=head["status"],
        rows=head["rows"],
        pif_95=pif_of(summary, 95),
        gates_passed=sum(gate.verdict is Verdict.PASSED for gate in gates),
        gates_failed=len(failed),
        seconds=math.fsum(seconds) if seconds else None,
        why=plain(why(head["error"], failed)),
        removed=head["removed"],
        gates_not_applied=sum(bool(gate.not_applied) for gate in gates),
    )
