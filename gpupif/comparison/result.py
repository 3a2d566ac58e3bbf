"""What `gpupif.compare` returns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..attack.any_known import attacker_line
from ..utils.display import Displayable, as_json, draw_line
from .linkage import Linkage
from .utility import Utility

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console


@dataclass(frozen=True)
class Comparison(Displayable):
    """A table before and after it was treated; made by `gpupif.compare`. Prints as tables.

    rows: of the table before; rows_taken_away: of these, that the one after lacks. quasi_identifiers, sensitive:
    columns; dropped: those that the table after has not.

    risk: one row a figure: ``pif50``, ``pif95``, ``pif99`` (bits), ``p50_cig`` to ``max_cig`` and ``p50_csf`` to
    ``max_csf`` (percentiles of the cells of the column where they are highest), ``k``, ``uniques``, ``unique_share``,
    and of sensitive attributes ``distinct_l``, ``t`` (the worst), ``homogeneous_classes`` and ``homogeneous_rows``;
    columns ``before``, ``after_category`` and, where cells were suppressed, ``after_wildcard`` (a missing value is a
    value of its own; it matches every value), ``after``, the worse of the two, and ``worse_reading``, which that is:
    "category", "wildcard" or, where they are equal, "both". cells: the same of each column and percentile of CIG and
    CSF. Figures that a table has not are None.

    utility: of the whole table, see `Utility`. columns: one row a column: values_before, values_after (different ones,
    but missing); entropy_before, entropy_after, entropy_lost (bits a row) and information_kept (I(X; X') / H(X), 0 to
    1, NaN where H(X) is 0), of the cells that are there in both tables; nonuniform_entropy_loss (bits, see `Utility`);
    total_variation and emd, of the distribution at the released detail (0 to 1; emd: of the longest distance);
    precision (1: as it was, 0: the top of its hierarchy; NaN without one); cells_changed, cells_suppressed; detail, how
    values before were brought to the detail of those after: "same", "mapped" (a function of them was released),
    "perturbed" (none was: they stand as they are), "dropped". pairs: one row a pair of columns:
    mutual_information_before, mutual_information_after (bits, in the rows in which both tables have both cells),
    mutual_information_kept (the one over the other, 0 to 1; NaN where nothing was there, and where a column is no
    function of what it was: what is drawn at random may agree by chance), total_variation at the released detail.

    linkage: see `Linkage`; None where it was not looked for. seconds: wall time by stage.
    """

    rows: int
    rows_taken_away: int
    quasi_identifiers: Sequence[Hashable]
    sensitive: Sequence[Hashable]
    dropped: Sequence[Hashable]
    risk: pd.DataFrame
    cells: pd.DataFrame
    utility: Utility
    columns: pd.DataFrame
    pairs: pd.DataFrame
    linkage: Linkage | None
    seconds: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """As of `Record`; risk by figure."""
        found = super().to_dict()
        found["risk"] = {figure: as_json(_plain(row)) for figure, row in self.risk.to_dict("index").items()}
        return found

    @property
    def _scored(self) -> list[Hashable]:
        return [*self.quasi_identifiers, *self.sensitive]

    def __repr__(self) -> str:
        return f"<Comparison of {self.rows:,} rows x {len(self.columns)} columns>"

    def draw(self, console: Console) -> None:
        from .report import BOTH_READINGS, columns_table, heading, pairs_table, risk_table, utility_table

        draw_line(console, attacker_line(self.quasi_identifiers, self._scored))
        console.print(heading(self.rows, self.rows_taken_away, len(self.columns), self.seconds), highlight=False)
        if len(self.risk):
            console.print()
            console.print(risk_table(self.risk))
        if "after_wildcard" in self.risk:
            console.print(BOTH_READINGS, highlight=False)
        tables = [utility_table(self.utility, self.linkage), columns_table(self.columns)]
        tables += [pairs_table(self.pairs)] if len(self.pairs) else []
        for table in tables:
            console.print()
            console.print(table)


def _plain(row: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
    """Whole numbers as such, which stand beside others in a column of floats."""
    whole = {name: int(value) for name, value in row.items() if isinstance(value, float) and value.is_integer()}
    return {**row, **whole}
