"""What `advise` finds: what each change of a column buys, ranked, as a frame and as a printed table."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..utils.display import Displayable, Heading, as_cell, as_text, draw_line, draw_table, plural

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

HEADINGS = {"pif95": "PIF 95", "fig": "FIG"}
SHOWN = {"fig": "{:,.1f}".format}
DROP, RECODE = "drop", "recode"


class Change(NamedTuple):
    """A change of one column, and the table after it.

    level: of its hierarchy, None where it is dropped. height: of its hierarchy, 0 where it has none. values: different
    ones that are left, missing ones as one. bits: of entropy given up, per row. figures: by name.
    """

    column: Hashable
    level: int | None
    height: int
    values: int
    bits: float
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Advice(Displayable):
    """What dropping and coarsening each column of a table buys and costs; made by `gpupif.advise`. Prints as a table.

    rows: of the table. columns: those that can be changed. criterion: the figure that they are ranked by. before: the
    figures of the table as it is: pif95 (bits), fig (bits, of all columns together), k (rows), uniques (rows that are
    alone in their class), and that of the criterion. device: which ran. seconds: wall time by stage. attacker: what the
    attacker knows, in words, unless the criterion says something else.

    changes: a row for each column dropped and each level of its hierarchy, the one that buys most per bit first:
    column, do ("drop" or "recode", as in a plan), level (missing where dropped), height (levels of the hierarchy),
    values (different ones that are left), bits (entropy given up, per row), each figure after the change and, under its
    name with _change, how much it changed; bought (by how much the criterion's figure became less risky; negative where
    the change made it riskier), bought_per_bit (0 where nothing was bought).
    """

    rows: int
    columns: Sequence[Hashable]
    criterion: str
    before: Mapping[str, float]
    device: str
    changes: pd.DataFrame
    seconds: Mapping[str, float]
    attacker: str

    def __repr__(self) -> str:
        changes = f"{len(self.changes):,} {plural(len(self.changes), 'change')}"
        return f"<Advice for {self.rows:,} {plural(self.rows, 'row')}: {changes} by {self.criterion}>"

    def draw(self, console: Console) -> None:
        from rich.markup import escape

        draw_line(console, self.attacker)
        counted = ", ".join(f"{stage} {duration:.2f} s" for stage, duration in self.seconds.items())
        console.print(
            f"[bold]{self.rows:,}[/] {plural(self.rows, 'row')} x [bold]{len(self.columns)}[/] "
            f"{plural(len(self.columns), 'column')} on {self.device}, {counted}",
            highlight=False,
        )
        now = "   ".join(
            f"{escape(as_text(HEADINGS.get(name, name)))}: [bold]{SHOWN.get(name, as_cell)(value)}[/]"
            for name, value in self.before.items()
        )
        console.print(f"As it is:   {now}", highlight=False, emoji=False)
        console.print()
        criterion = HEADINGS.get(self.criterion, self.criterion)
        title = f"What a change buys, less risk by {criterion} per bit given up first"
        if not (self.changes["bought"] > 0).any():
            draw_line(console, f"No single change makes {criterion} less risky.")
            title = "What a change costs, in bits given up"
        headings = [
            Heading("column", text=True),
            Heading("change", text=True),
            Heading("values", folds=True),
            Heading("bits given up", folds=True, show="{:.3f}".format),
            Heading("bought", folds=True),
            Heading("per bit", folds=True),
            *(Heading(HEADINGS.get(name, name), folds=True, show=SHOWN.get(name, as_cell)) for name in self.before),
        ]
        rows = [
            [
                as_text(row["column"]),
                "drop" if row["do"] == DROP else f"level {row['level']} of {row['height']}",
                *(row[name] for name in ("values", "bits", "bought", "bought_per_bit", *self.before)),
            ]
            for row in self.changes.to_dict("records")
        ]
        console.print(draw_table(title, headings, rows))


def rank(
    before: Mapping[str, float],
    changes: Sequence[Change],
    columns: Sequence[Hashable],
    criterion: str,
    high_is_bad: bool,
) -> pd.DataFrame:
    """The changes as `Advice` has them; ties: what buys more first, then fewer bits, then the order of the columns.

    high_is_bad: whether the criterion's figure is a risk that a change is to lower, else a protection that it is to
    raise.
    """
    import pandas as pd

    place = {name: number for number, name in enumerate(columns)}

    def bought(change: Change) -> float:
        gained = before[criterion] - change.figures[criterion]
        # Of two that are infinite, or not known, nothing is known to be bought.
        return 0.0 if math.isnan(gained) else float(gained if high_is_bad else -gained)

    def per_bit(change: Change) -> float:
        found = bought(change)
        return 0.0 if found == 0 else found / change.bits if change.bits > 0 else math.copysign(math.inf, found)

    ranked = sorted(
        changes,
        key=lambda one: (
            -per_bit(one),
            -bought(one),
            one.bits,
            place[one.column],
            math.inf if one.level is None else one.level,
        ),
    )
    found: dict[str, Any] = {
        "column": pd.Series([one.column for one in ranked], dtype=object),
        "do": pd.Series([DROP if one.level is None else RECODE for one in ranked], dtype="str"),
        "level": pd.Series([one.level for one in ranked], dtype="Int64"),
        "height": pd.Series([one.height for one in ranked], dtype="int64"),
        "values": pd.Series([one.values for one in ranked], dtype="int64"),
        "bits": pd.Series([one.bits for one in ranked], dtype="float64"),
    }
    for name, now in before.items():
        kind = "int64" if isinstance(now, int) else "float64"
        found[name] = pd.Series([one.figures[name] for one in ranked], dtype=kind)
        found[f"{name}_change"] = found[name] - now
    found["bought"] = pd.Series([bought(one) for one in ranked], dtype="float64")
    found["bought_per_bit"] = pd.Series([per_bit(one) for one in ranked], dtype="float64")
    return pd.DataFrame(found)
