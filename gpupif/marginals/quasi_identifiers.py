"""The public `quasi_identifiers`: the smallest sets of columns that tell most rows, or pairs of rows, apart."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..errors import InputError
from ..utils.display import Displayable, Heading, as_part, as_text, draw_table, plural
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import Columns, check_word, share, whole_number
from .count_statistics import Separation
from .open_counts import open_counts
from .request import CountRequest
from .smallest_sets import Criterion, SmallestSets, find_smallest_sets

if TYPE_CHECKING:
    from rich.console import Console

RATIOS = ("distinction", "separation")
# The most columns of a set where nobody says, of a table that has so many; sets that may be looked through.
DEFAULT_SIZE, MOST_SETS = 3, 1_000_000


@dataclass(frozen=True)
class QuasiIdentifiers(Displayable):
    """The smallest sets of columns that reach an alpha; made by `gpupif.quasi_identifiers`. Prints as a table.

    rows: of the table. columns: that were looked at. alpha, by, max_size: what was asked for. device: which counted.

    sets: one row a set, those of fewer columns first, of as many the highest first: columns (a list of names), size,
    distinction, separation. distinction, separation: of all columns together, which no set exceeds.

    counted: sets that were counted to find them. top: how many are printed, and in `to_dict`, which has how many there
    are as `sets_in_all`. seconds: wall time by stage.
    """

    rows: int
    columns: Sequence[Hashable]
    alpha: float
    by: str
    max_size: int
    device: str
    sets: pd.DataFrame
    distinction: float
    separation: float
    counted: int
    top: int
    seconds: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """As of `Record`, with the first `top` sets and how many there are."""
        found = super().to_dict()
        found["sets"] = found["sets"][: self.top]
        return {**found, "sets_in_all": len(self.sets)}

    def __repr__(self) -> str:
        return f"<QuasiIdentifiers of {self.rows:,} rows: {len(self.sets):,} of at most {self.max_size} columns>"

    def draw(self, console: Console) -> None:
        """See `Displayable`."""
        found, shown = len(self.sets), self.sets.head(self.top)
        counted = ", ".join(f"{stage} {duration:.2f} s" for stage, duration in self.seconds.items())
        console.print(
            f"[bold]{self.rows:,}[/] {plural(self.rows, 'row')} x [bold]{len(self.columns)}[/] "
            f"{plural(len(self.columns), 'column')}: [bold]{found:,}[/] smallest {plural(found, 'set')} of at most "
            f"{self.max_size} with a {self.by} of {self.alpha:g} or more, {counted}",
            highlight=False,
        )
        console.print(
            f"All columns together: distinction {as_part(self.distinction)}, separation {as_part(self.separation)}.",
            highlight=False,
        )
        if not found:
            reached = {"distinction": self.distinction, "separation": self.separation}[self.by] >= self.alpha
            console.print("More columns than max_size reach it." if reached else "Not even these reach it.")
        else:
            more = f" (the first {len(shown):,} of {found:,})" if len(shown) < found else ""
            headings = [
                Heading("columns", text=True, show=lambda names: " + ".join(map(as_text, names))),
                Heading("size"),
                *(Heading(name, show=as_part) for name in RATIOS),
            ]
            console.print()
            console.print(draw_table(f"Smallest sets of columns{more}", headings, shown.itertuples(index=False)))


def quasi_identifiers(
    table: Any,
    alpha: float = 0.9,
    by: str = "distinction",
    max_size: int | None = None,
    columns: Columns | None = None,
    *,
    top: int = 20,
    missing: str = "category",
) -> QuasiIdentifiers:
    """Find the smallest sets of columns that tell most rows of a table apart: its quasi-identifiers, and keys.

    The *distinction* of a set of columns is the number of its different combinations of values, as a share of the rows:
    so large a part of the rows can be kept such that no two of them agree on the set. Its *separation* is the share of
    the pairs of rows that differ on it. A set is an alpha-distinct, or alpha-separation, quasi-identifier where that is
    alpha or more; with alpha = 1 it is a key. More columns only add to both, so a set is listed only if none of its
    columns can be left out. What is found is exact: ratios are compared as whole numbers, and no rows are sampled.

    Parameters
    ----------
    table:
        As of `gpupif.toxic_pairs`: a table of any kind, a path, or a Dask DataFrame, which is computed anew for each
        size of sets. What comes out is the same, to the last bit, wherever it lies and on every device.
    alpha:
        Above 0 and up to 1, as it reads: 0.9 is nine tenths, which 9 of 10 rows reach.
    by:
        "distinction" or "separation": which of the two has to reach alpha. Both are reported.
    max_size:
        The most columns of a set; default 3, or all of fewer columns. Sets that cannot reach alpha are not counted;
        where more than a million are possible, the call is refused before it starts.
    columns:
        Columns to look at; default all.
    top:
        How many sets to print, and to have in ``to_dict``; ``.sets`` has all.
    missing:
        "category": missing values are one value of their own; "error": refuse them.

    Returns
    -------
    QuasiIdentifiers
        ``.sets``, a pandas DataFrame: those of fewer columns first, of as many the highest first (ties: the higher
        other ratio, then the earlier columns); prints as a table; ``.to_dict()``, ``.to_json()``. No sets where none of
        so many columns reaches alpha; ``.distinction`` and ``.separation`` say what all columns together reach.

    Raises
    ------
    InputError
        No rows, unknown columns (ColumnNotFoundError), missing values under "error", values that are no categories
        (ColumnTypeError), an argument out of range, too many sets, too little memory.
    TableReadError
        A file that cannot be read, or changes meanwhile.
    DeviceError
        A GPU that was asked for (`gpupif.config`) and cannot be used, or that fails.

    References
    ----------
    Motwani and Xu, Efficient algorithms for masking and finding quasi-identifiers, Proceedings of the SIAM
    International Workshop on Practical Privacy-Preserving Data Mining (2008), which ARX cites as VLDB 2007; there both
    are estimated from samples of the rows.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"age": [20, 30, 40, 20, 40], "sex": list("fffmm"), "state": "CA CA TX NY CA".split()})
    >>> found = gpupif.quasi_identifiers(people, alpha=0.8)
    >>> found.sets[["columns", "distinction", "separation"]]
            columns  distinction  separation
    0    [age, sex]          1.0         1.0
    1  [age, state]          1.0         1.0
    2  [sex, state]          0.8         0.9

    """
    request = CountRequest(columns, missing=missing)
    check_word("by", by, RATIOS)
    criterion = Criterion(Fraction(repr(share("alpha", alpha))), by)
    asked = None if max_size is None else whole_number("max_size", max_size, "columns")
    shown = whole_number("top", top, "sets of columns")
    started = time.perf_counter()
    with Reporter() as report, announce_compilation(), open_counts(table, request, report) as counts:
        names = list(counts.names)
        size = _check_size(len(names), asked)
        opened = time.perf_counter()
        found = find_smallest_sets(counts, criterion, size)
        device = counts.device
    seconds = {"encode": opened - started, "count": time.perf_counter() - opened}
    whole = found.whole
    ratios = whole.distinction, whole.separation
    sets = _as_frame(found, names, by)
    return QuasiIdentifiers(
        whole.rows, names, float(criterion.alpha), by, size, device, sets, *ratios, found.counted, shown, seconds
    )


def _check_size(columns: int, asked: int | None) -> int:
    """The most columns of a set, of so many; raises InputError where there are fewer, or too many sets."""
    if asked is not None and asked > columns:
        raise InputError(
            f"max_size: expected at most {columns}, the number of columns, got {asked}. Give max_size={columns}."
        )
    size = min(DEFAULT_SIZE, columns) if asked is None else asked
    sets = [math.comb(columns, own) for own in range(1, size + 1)]
    if sum(sets) > MOST_SETS:
        largest = max((own for own in range(1, size) if sum(sets[:own]) <= MOST_SETS), default=0)
        mend = f"Give max_size={largest}, or name fewer columns" if largest else "Name fewer columns"
        raise InputError(
            f"max_size: there are {sum(sets):,} sets of at most {size} of {columns:,} columns, expected at most "
            f"{MOST_SETS:,}. {mend} with columns=."
        )
    return size


def _as_frame(found: SmallestSets, names: Sequence[Hashable], by: str) -> pd.DataFrame:
    """The sets, those of fewer columns first, of as many the highest first."""

    def rank(item: tuple[tuple[int, ...], Separation]) -> tuple[Any, ...]:
        set_, own = item
        key = (-own.classes, own.together) if by == "distinction" else (own.together, -own.classes)
        return (len(set_), *key, set_)

    ranked = sorted(found.found.items(), key=rank)
    return pd.DataFrame(
        {
            "columns": pd.Series([[names[place] for place in set_] for set_, _ in ranked], dtype=object),
            "size": pd.Series([len(set_) for set_, _ in ranked], dtype="int64"),
            **{name: pd.Series([getattr(own, name) for _, own in ranked], dtype="float64") for name in RATIOS},
        }
    )
