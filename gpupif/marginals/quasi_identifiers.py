"""The public `quasi_identifiers`: the smallest sets of columns that tell most rows, or pairs of rows, apart."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from ..encoding.column import Column
from ..engines.base import Counter
from ..errors import InputError
from ..utils.display import Displayable, Heading, as_part, as_text, draw_table, plural
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import Columns, check_word, share, whole_number
from .count_statistics import Separation
from .open_counts import open_counts
from .request import CountRequest
from .set_counts import SetCounts, SetRequest, Total

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
        """Return the result as JSON has it, with the first `top` sets and the number of all."""
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


ColumnSet = tuple[int, ...]


@dataclass(frozen=True)
class Criterion:
    """At least `alpha` of the rows distinct (by "distinction"), or of their pairs separated (by "separation").

    Of a set of columns this knows one number, or what that is at best: how many classes there are, or the sum of the
    squares of their sizes.
    """

    alpha: Fraction
    by: str

    def number(self, of: Separation) -> int:
        """The number of a set that was counted."""
        return of.classes if self.by == "distinction" else of.together + of.rows

    def at_best(self, number: int, values: int) -> int:
        """The number if a column, or several, of so many values together cut each class into as many, of equal size."""
        return number * values if self.by == "distinction" else -(-number // values)

    def worst(self, numbers: Sequence[int]) -> int:
        """Return the tightest of several optimistic bounds of the number."""
        return min(numbers) if self.by == "distinction" else max(numbers)

    def reached(self, number: int, rows: int) -> bool:
        """Return whether a set with this number tells so many rows apart well enough."""
        if self.by == "distinction":
            return number >= self.alpha * rows
        pairs = rows * (rows - 1)
        return pairs - max(0, number - rows) >= self.alpha * pairs


class SmallestSets(NamedTuple):
    """found: the smallest sets, by places of columns, and how each tells rows apart. whole: all columns together.

    columns: of the table. counted: how many sets of several columns were.
    """

    found: dict[ColumnSet, Separation]
    whole: Separation
    columns: Sequence[Column]
    counted: int


def find_smallest_sets(counts: SetCounts, criterion: Criterion, max_size: int) -> SmallestSets:
    """All sets of at most `max_size` columns of which none can be left out; those of fewer columns first."""
    every = tuple(range(len(counts.names)))
    counted = counts.count([SetRequest(every)], make_separation)
    columns, rows = counted.columns, counted.total.rows
    whole = Separation.total(counted.found[0])
    if not criterion.reached(criterion.number(whole), rows):
        return SmallestSets({}, whole, columns, 1)
    values = [column.cardinality for column in columns]
    found: dict[ColumnSet, Separation] = {}
    known: dict[ColumnSet, Separation] = {
        (place,): Separation.from_counts(columns[place].counts, rows) for place in every
    }
    at_best: dict[ColumnSet, int] = {}
    sets = 1
    for left in reversed(range(max_size)):
        numbers = at_best | {set_: criterion.number(one) for set_, one in known.items()}
        smallest = {set_: one for set_, one in known.items() if criterion.reached(numbers[set_], rows)}
        found |= smallest
        further = _most_values(values, left)
        open_ = {
            set_: number
            for set_, number in numbers.items()
            if set_ not in smallest and criterion.reached(criterion.at_best(number, further), rows)
        }
        at_best = dict(_candidates(open_, values, criterion))
        wanted = [set_ for set_, number in at_best.items() if criterion.reached(number, rows)]
        parts = counts.count([SetRequest(set_) for set_ in wanted], make_separation).found if wanted else []
        known = {set_: Separation.total(own) for set_, own in zip(wanted, parts, strict=True)}
        sets += len(wanted)
    return SmallestSets(found, whole, columns, sets)


def make_separation(columns: Sequence[Column], total: Total) -> Any:
    """Finds how a set of columns tells rows apart (see `base.MakeFind`)."""

    def find(set_: Sequence[int], counter: Counter, place: int) -> Separation:
        return Separation.from_counts(counter.counts(place), total.rows)

    return find


def _candidates(
    open_: dict[ColumnSet, int], values: Sequence[int], criterion: Criterion
) -> Iterator[tuple[ColumnSet, int]]:
    """Sets of one column more of which each part may still become one that is found, and their numbers at best."""
    for prefix, group in groupby(sorted(open_), key=lambda set_: set_[:-1]):
        for last in combinations([set_[-1] for set_ in group], 2):
            set_ = (*prefix, *last)
            parts = [(column, set_[:at] + set_[at + 1 :]) for at, column in enumerate(set_)]
            if all(part in open_ for _, part in parts):
                yield set_, criterion.worst([criterion.at_best(open_[part], values[column]) for column, part in parts])


def _most_values(values: Sequence[int], columns: int) -> int:
    """Return the most values that so many columns can have together."""
    return math.prod(sorted(values, reverse=True)[:columns])
