"""The public `quasi_identifiers`: the smallest sets of columns that distinguish most rows, or pairs of rows."""

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
from ..utils.display import Displayable, Heading, as_part, as_text, draw_line, draw_table, draw_verdict, plural, quoted
from ..utils.progress import Reporter, announce_compilation
from ..utils.redaction import as_interval
from ..utils.validation import Columns, check_word, share, whole_number
from .count_statistics import Separation
from .open_counts import open_counts
from .request import CountRequest
from .set_counts import SetCounts, SetRequest, Total

if TYPE_CHECKING:
    from rich.console import Console

RATIOS = ("distinction", "separation")
# The default for the most columns of a set. The most sets that a call may have to count.
DEFAULT_SIZE, MOST_SETS = 3, 1_000_000


@dataclass(frozen=True)
class QuasiIdentifiers(Displayable):
    """The smallest sets of columns that reach an alpha; made by `gpupif.quasi_identifiers`. Prints as a table.

    rows: int. Rows of the table.
    columns: sequence of column names. The columns that were searched.
    alpha: float, in (0, 1]. The alpha that was asked for.
    by: str. The ratio that has to reach alpha: "distinction" or "separation".
    max_size: int. The most columns of a set.
    device: str. The device that counted.
    sets: pandas DataFrame. One row for each set; see below.
    distinction: float, in (0, 1]. The distinction of all columns together, which no set exceeds.
    separation: float, in [0, 1]. The separation of all columns together, which no set exceeds.
    counted: int. The sets that were counted to find the smallest sets.
    top: int. How many sets are printed, and are in `to_dict`.
    seconds: mapping of stage to wall time, seconds.

    The columns of `sets` are: columns (a list of names), size (number of columns), distinction, separation. Smaller
    sets come first; sets of one size are in order of their ratio, the highest first.
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
        """Return the result as a dictionary for JSON: with the first `top` sets, and the number of all."""
        document = super().to_dict()
        document["sets"] = document["sets"][: self.top]
        return {**document, "sets_in_all": len(self.sets)}

    def __repr__(self) -> str:
        return f"<QuasiIdentifiers of {self.rows:,} rows: {len(self.sets):,} of at most {self.max_size} columns>"

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        size = f"{self.rows:,} {plural(self.rows, 'row')} x {len(self.columns)} {plural(len(self.columns), 'column')}"

        def part(share: float) -> str:
            return as_interval(share, self.rows, percent=True) if redact else as_part(share)

        asked = (
            f"{size}: the smallest sets of at most {self.max_size} columns with a {self.by} of {self.alpha:g} or more."
        )
        every = f"All columns together: distinction {part(self.distinction)}, separation {part(self.separation)}."
        if not len(self.sets):
            reached = {"distinction": self.distinction, "separation": self.separation}[self.by] >= self.alpha
            return [
                asked,
                "Only sets of more columns reach it." if reached else "Not even all columns reach it.",
                every,
            ]
        first: dict[Any, Any] = self.sets.iloc[0].to_dict()
        columns = " + ".join(map(quoted, first["columns"]))
        best = f"the first, {columns}, has a {self.by} of {part(first[self.by])}"
        return [asked, f"{len(self.sets):,} {plural(len(self.sets), 'set')}: {best}.", every]

    def draw(self, console: Console) -> None:
        """Print the result; see `Displayable`."""
        found, shown = len(self.sets), self.sets.head(self.top)
        draw_verdict(self, console)
        if found:
            more = f" (the first {len(shown):,} of {found:,})" if len(shown) < found else ""
            headings = [
                Heading("columns", text=True, show=lambda names: " + ".join(map(as_text, names))),
                Heading("size"),
                *(Heading(name, show=as_part) for name in RATIOS),
            ]
            console.print()
            console.print(draw_table(f"Smallest sets of columns{more}", headings, shown.itertuples(index=False)))
        console.print()
        spent = ", ".join(f"{stage} {duration:.2f} s" for stage, duration in self.seconds.items())
        draw_line(console, f"Device {self.device}, {spent}")


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
    """Find the smallest sets of columns that distinguish most rows of a table: its quasi-identifiers, and keys.

    The *distinction* of a set of columns is the number of its different combinations of values, as a share of the rows.
    It is the largest share of the rows that can be kept so that no two rows agree on the set. The *separation* of a set
    is the share of the pairs of rows that differ on the set. A set is an alpha-distinct, or alpha-separation,
    quasi-identifier if its ratio is alpha or more; with alpha = 1 it is a key. More columns never lower a ratio, so a
    set is listed only if none of its columns can be left out. The result is exact: ratios are compared as whole
    numbers, and no rows are sampled.

    Parameters
    ----------
    table:
        As in `gpupif.toxic_pairs`: a table of any kind, a path, or a Dask DataFrame, which is computed anew for each
        size of sets. The result is the same, to the last bit, for every kind of table and on every device.
    alpha:
        The least ratio, above 0 and up to 1, exactly as it is written: 9 of 10 rows reach 0.9. Default 0.9.
    by:
        The ratio that has to reach alpha: "distinction" (default) or "separation". Both are reported.
    max_size:
        The most columns of a set. Default: 3, or the number of columns if that is lower. Sets that cannot reach alpha
        are not counted. If more than a million sets are possible, the call is refused before it starts.
    columns:
        Columns to search. Default: all.
    top:
        How many sets to print, and to have in ``to_dict``, default 20. ``.sets`` has all sets.
    missing:
        "category" (default): missing values are one value of their own; "error": refuse them.

    Returns
    -------
    QuasiIdentifiers
        ``.sets``, a pandas DataFrame: smaller sets first, among sets of one size the highest ratio first (ties: the
        higher other ratio, then the earlier columns); prints as a table; ``.to_dict()``, ``.to_json()``. ``.sets`` is
        empty if no set of at most max_size columns reaches alpha. ``.distinction`` and ``.separation`` are the ratios
        of all columns together.

    Raises
    ------
    InputError
        No rows, unknown columns (ColumnNotFoundError), missing values under "error", values that are no categories
        (ColumnTypeError), an argument out of range, too many sets, too little memory.
    TableReadError, DeviceError
        As `gpupif.score`.

    References
    ----------
    Motwani and Xu, Efficient algorithms for masking and finding quasi-identifiers, Proceedings of the SIAM
    International Workshop on Practical Privacy-Preserving Data Mining (2008), which ARX cites as VLDB 2007. The paper
    estimates both ratios from samples of the rows.

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
        result = find_smallest_sets(counts, criterion, size)
        device = counts.device
    seconds = {"encode": opened - started, "count": time.perf_counter() - opened}
    whole = result.whole
    ratios = whole.distinction, whole.separation
    sets = _as_frame(result, names, by)
    return QuasiIdentifiers(
        whole.rows, names, float(criterion.alpha), by, size, device, sets, *ratios, result.counted, shown, seconds
    )


def _check_size(columns: int, asked: int | None) -> int:
    """Return the most columns of a set, of a table with `columns` columns. asked: None for the default.

    Raises InputError for more columns than there are, and for too many sets.
    """
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


def _as_frame(result: SmallestSets, names: Sequence[Hashable], by: str) -> pd.DataFrame:
    """Return the sets as a table, smaller sets first, among sets of one size the highest ratio first."""

    def rank(item: tuple[tuple[int, ...], Separation]) -> tuple[Any, ...]:
        set_, ratios = item
        key = (-ratios.classes, ratios.together) if by == "distinction" else (ratios.together, -ratios.classes)
        return (len(set_), *key, set_)

    ranked = sorted(result.found.items(), key=rank)
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
    """The condition that a set of columns has to meet: distinction, or separation, of at least alpha.

    It is decided by one whole number of a set. By "distinction" the number is the number of classes, and higher is
    better. By "separation" it is the sum of the squares of class sizes, and lower is better.
    """

    alpha: Fraction
    by: str

    def number(self, separation: Separation) -> int:
        """Return the number of a set that was counted."""
        return separation.classes if self.by == "distinction" else separation.together + separation.rows

    def at_best(self, number: int, values: int) -> int:
        """Return the best number if columns with `values` combinations are added to a set.

        At best they cut each class into `values` classes of equal size.
        """
        return number * values if self.by == "distinction" else -(-number // values)

    def worst(self, numbers: Sequence[int]) -> int:
        """Return the tightest of several optimistic bounds of the number."""
        return min(numbers) if self.by == "distinction" else max(numbers)

    def reached(self, number: int, rows: int) -> bool:
        """Return whether a set with this number meets the condition. rows: of the table."""
        if self.by == "distinction":
            return number >= self.alpha * rows
        pairs = rows * (rows - 1)
        return pairs - max(0, number - rows) >= self.alpha * pairs


class SmallestSets(NamedTuple):
    """The result of a search.

    found: the separation of each of the smallest sets. whole: of all columns together. columns: of the table. counted:
    how many sets of several columns were counted.
    """

    found: dict[ColumnSet, Separation]
    whole: Separation
    columns: Sequence[Column]
    counted: int


def find_smallest_sets(counts: SetCounts, criterion: Criterion, max_size: int) -> SmallestSets:
    """Return all sets of at most `max_size` columns that meet the condition, and none of whose columns can be left out.

    Smaller sets come first. Sets grow column by column, as in the Apriori algorithm: a set is counted only if each set
    with one column less can still grow into a set that meets the condition.
    """
    every = tuple(range(len(counts.names)))
    counted = counts.count([SetRequest(every)], make_separation)
    columns, rows = counted.columns, counted.total.rows
    whole = Separation.total(counted.found[0])
    if not criterion.reached(criterion.number(whole), rows):
        return SmallestSets({}, whole, columns, 1)
    values = [column.cardinality for column in columns]
    reaching: dict[ColumnSet, Separation] = {}
    separations: dict[ColumnSet, Separation] = {
        (place,): Separation.from_counts(columns[place].counts, rows) for place in every
    }
    at_best: dict[ColumnSet, int] = {}
    sets = 1
    for left in reversed(range(max_size)):
        numbers = at_best | {set_: criterion.number(ratios) for set_, ratios in separations.items()}
        smallest = {set_: ratios for set_, ratios in separations.items() if criterion.reached(numbers[set_], rows)}
        reaching |= smallest
        # The most combinations of values that the columns to come can have.
        further = math.prod(sorted(values, reverse=True)[:left])
        alive = {
            set_: number
            for set_, number in numbers.items()
            if set_ not in smallest and criterion.reached(criterion.at_best(number, further), rows)
        }
        at_best = dict(_candidates(alive, values, criterion))
        wanted = [set_ for set_, number in at_best.items() if criterion.reached(number, rows)]
        results = counts.count([SetRequest(set_) for set_ in wanted], make_separation).found if wanted else []
        separations = {set_: Separation.total(own) for set_, own in zip(wanted, results, strict=True)}
        sets += len(wanted)
    return SmallestSets(reaching, whole, columns, sets)


def make_separation(columns: Sequence[Column], total: Total) -> Any:
    """Return a function that finds the separation by a set of columns (see `set_counts.MakeFind`)."""

    def find(set_: Sequence[int], counter: Counter, place: int) -> Separation:
        return Separation.from_counts(counter.counts(place), total.rows)

    return find


def _candidates(
    alive: dict[ColumnSet, int], values: Sequence[int], criterion: Criterion
) -> Iterator[tuple[ColumnSet, int]]:
    """Yield sets of one column more, all of whose subsets of one column less can grow, with their best numbers."""
    for prefix, group in groupby(sorted(alive), key=lambda set_: set_[:-1]):
        for last in combinations([set_[-1] for set_ in group], 2):
            set_ = (*prefix, *last)
            parts = [(column, set_[:at] + set_[at + 1 :]) for at, column in enumerate(set_)]
            if all(part in alive for _, part in parts):
                yield set_, criterion.worst([criterion.at_best(alive[part], values[column]) for column, part in parts])
