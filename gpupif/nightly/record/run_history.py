"""All runs of a state folder at a glance."""

from __future__ import annotations

import csv
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

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console


@dataclass(frozen=True)
class PastRun:
    """A run in a word. pif_95: bits, against the worst attacker. gates_failed: those that are unknown too;
    gates_not_applied: those on a change that had nothing to compare with.

    seconds: of all stages. why: it did not end well, its error or the names of the gates that do not hold. removed:
    when retention removed all else of it; None of a run that is there.
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
            Heading("not applied"),
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
    """The runs of a state folder, also while one is on; opened to be read only.

    Raises as `Record.open`.
    """
    with Record.open(state) as record, record.snapshot():
        heads = record.heads()
        gates, seconds = record.gates(), record.seconds()
    return History(str(state), [_past_run(head, gates.get(head["number"], {}), seconds) for head in heads])


def _past_run(head: dict[str, Any], gates: dict[str, str], seconds: dict[int, float]) -> PastRun:
    failed = [name for name, verdict in gates.items() if verdict not in (Verdict.PASSED, Verdict.NOT_APPLIED)]
    summary = None if head["summary"] is None else parse_json(head["summary"])
    return PastRun(
        number=head["number"],
        started=head["started"],
        status=head["status"],
        rows=head["rows"],
        pif_95=pif_of(summary, 95),
        gates_passed=sum(verdict == Verdict.PASSED for verdict in gates.values()),
        gates_failed=len(failed),
        seconds=seconds.get(head["number"]),
        why=plain(why(head["error"], failed)),
        removed=head["removed"],
        gates_not_applied=sum(verdict == Verdict.NOT_APPLIED for verdict in gates.values()),
    )
