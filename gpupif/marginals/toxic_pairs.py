"""The public `toxic_pairs`: pairs of columns with much joint information, and pairs of values rare together."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ..attack.request import warn_of_unique
from ..errors import InputError
from ..utils.display import (
    Displayable,
    Heading,
    as_cell,
    as_found,
    as_part,
    bits,
    draw_line,
    draw_table,
    draw_verdict,
    highest_place,
    plural,
    quoted,
)
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import Columns, brief, is_whole, whole_number
from .open_counts import open_counts
from .request import CountRequest
from .set_counts import SetRequest
from .toxic_values import MeasuredSets

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from ..utils.printed_table import PrintedTable

SIZES = {2: "pairs", 3: "triples"}
BITS = "{:.2f}".format


def _count(value: Any) -> str:
    """Return a number of rows, or with weights of people, as text."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


# The columns of pairs and of values that are printed.
HEADINGS = {
    "joint_entropy": Heading("joint entropy, bits", show=BITS),
    "mutual_information": Heading("mutual information, bits", show=BITS),
    "total_correlation": Heading("total correlation, bits", show=BITS),
    "unique_share": Heading("unique rows", show=lambda value: f"{100 * value:.2f} %"),
    "smallest_cohort": Heading("smallest cohort, rows", show=_count),
    "combinations": Heading("combinations", show=_count),
    "distinction": Heading("distinction", show=as_part, optional=True),
    "separation": Heading("separation", show=as_part, optional=True),
    "count": Heading("rows", show=_count),
    "expected": Heading("rows expected", show="{:,.1f}".format),
    "rarity": Heading("rarity, bits", show=BITS),
    "information": Heading("information, bits", show=BITS, optional=True),
}


@dataclass(frozen=True)
class ToxicPairs(Displayable):
    """Pairs (or triples) of columns and of values; made by `gpupif.toxic_pairs`. Prints as a table.

    rows: int. Rows of the table.
    columns: sequence of column names. The columns that were searched.
    size: int. 2 for pairs, 3 for triples.
    device: str. The device that counted.
    pairs: pandas DataFrame. One row for each pair of columns, the highest joint entropy first; see below.
    values: pandas DataFrame. One row for each of the rarest pairs of values, the rarest first; see below.
    top: int. How many of each are printed, and are in `to_dict`. `values` has no more.
    seconds: mapping of stage to wall time, seconds.
    people: float or None. The sum of the sampling weights. None without weights.

    The columns of `pairs` are: column_1, column_2 (and column_3); joint_entropy (bits); mutual_information (bits; for
    triples total_correlation); unique_share and unique_rows (rows that no other row agrees with on these columns, as a
    share and as a number); smallest_cohort (rows); combinations (number of pairs of values that occur); and, without
    weights, distinction and separation, see `gpupif.quasi_identifiers`.

    The columns of `values` are: column_1, value_1, column_2, value_2 (and column_3, value_3; None for missing); count
    (rows); expected (rows if the values were independent, from p(a) p(b)); rarity, log2 of expected / count (bits);
    information, -log2 of the share of the rows (bits).

    With weights all numbers of rows are numbers of people, in floats. A person is then unique if the weights of all
    rows that agree sum to at most 1.
    """

    rows: int
    columns: Sequence[Hashable]
    size: int
    device: str
    pairs: pd.DataFrame
    values: pd.DataFrame
    top: int
    seconds: Mapping[str, float]
    people: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary for JSON, without `people` if rows have no weights.

        Triples have the key "triples". The first `top` pairs are in it; "pairs_in_all" (or "triples_in_all") and
        "values_in_all" are the numbers of all pairs of columns and of values.
        """
        document = super().to_dict()
        kind, pairs = SIZES[self.size], document.pop("pairs")
        document[kind], document[f"{kind}_in_all"] = pairs[: self.top], len(pairs)
        document["values_in_all"] = self._combinations
        if self.people is None:
            del document["people"]
        return document

    def __repr__(self) -> str:
        return f"<ToxicPairs of {self.rows:,} rows: {len(self.pairs):,} {SIZES[self.size]} of columns>"

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        number = len(self.pairs)
        size = f"{self.rows:,} {plural(self.rows, 'row')}"
        size += (
            ""
            if self.people is None
            else f" for {as_cell(float(self.people))} {'person' if self.people == 1 else 'people'}"
        )
        kind = plural(number, SIZES[self.size][:-1])
        said = [f"{size} x {len(self.columns)} columns: {number:,} {kind} of columns, by what they tell together."]
        first: dict[Any, Any] = self.pairs.iloc[0].to_dict()
        told = f"{_joined(first, self.size, 'column', quoted)} tell most"
        told += "" if redact else f": {bits(first['joint_entropy'])}"
        alone: dict[Any, Any] = self.pairs.iloc[highest_place(self.pairs["unique_share"])].to_dict()
        unique = "of rows are unique" if self.people is None else "of the people are unique in the population"
        if alone["unique_share"] and not redact:
            single = f"{as_part(alone['unique_share'])} {unique} on {_joined(alone, self.size, 'column', quoted)}"
            told = f"{single}; {told}"
        said.append(f"{told}.")
        if len(self.values):
            rarest: dict[Any, Any] = self.values.iloc[0].to_dict()
            who = _joined(rarest, self.size, "column", quoted)
            if not redact:
                # The figures of a pair tell its values to who knows how frequent values are.
                who += f" = {_joined(rarest, self.size, 'value', as_found)}, {_count(rarest['count'])}"
                who += f" where {rarest['expected']:,.1f} would be if they were independent"
            said.append(f"Rarest together: {'values of ' * redact}{who}.")
        return said

    def draw(self, console: Console) -> None:
        draw_verdict(self, console)
        console.print()
        title = f"Columns with the most joint information{_shown(self.top, len(self.pairs))}"
        console.print(_table(title, self.pairs.head(self.top), self.size, {"columns": "column"}, self._unit))
        people = self.rows if self.people is None else self.people
        most = f"If all {self._unit} differed, it would be {bits(math.log2(people))}; independent columns share 0 bits."
        draw_line(console, most if people > 1 else "", "dim")
        console.print()
        title = f"Values far rarer together than if they were independent{_shown(self.top, self._combinations)}"
        console.print(_table(title, self.values, self.size, {"columns": "column", "values": "value"}, self._unit))
        draw_line(console, "Rarity: by how many bits rarer than expected; 0 is independent.", "dim")
        spent = ", ".join(f"{stage} {duration:.2f} s" for stage, duration in self.seconds.items())
        console.print()
        draw_line(console, f"Device {self.device}, {spent}")

    @property
    def _unit(self) -> str:
        return "rows" if self.people is None else "people"

    @property
    def _combinations(self) -> int:
        return int(self.pairs["combinations"].sum())


def toxic_pairs(
    table: Any,
    size: int = 2,
    columns: Columns | None = None,
    *,
    top: int = 20,
    weights: Hashable = None,
    missing: str = "category",
) -> ToxicPairs:
    """Rank all pairs of columns by their joint information, and find the pairs of values that are rarest together.

    Two columns that identify nobody may do so together. Two values may, too: many people live in a country and many
    follow a religion, yet few may do both. The information of a pair of columns is their joint entropy. A pair of
    values a, b is *toxic* if its share of the rows p(a, b) is far below p(a) p(b), its share if a and b were
    independent. Its rarity is log2 of p(a) p(b) / p(a, b), the negative of its pointwise mutual information. A pair of
    rarity 0 is as frequent as independent values; a pair of negative rarity is more frequent.

    Parameters
    ----------
    table:
        As in `gpupif.score`: a pandas, Polars or cuDF DataFrame, a pyarrow Table, the path of a file, of a folder of
        Parquet files or of a pattern, or a Dask DataFrame, which is computed at once. Files that do not fit into memory
        are read in streams and counted chunk by chunk. Their temporary files take about a byte for each cell, or two if
        there are more combinations of values than fit into memory. The result is the same, to the last bit, in every
        way and on every device (see `gpupif.config`).
    size:
        2 (default) for pairs, 3 for triples (of values a, b and c, with p(a) p(b) p(c)).
    columns:
        Columns to search. Default: all except the column of weights.
    top:
        How many pairs of values to list, and how many pairs of columns to print and to have in ``to_dict``; 1 or more,
        default 20. ``.pairs`` has all pairs of columns.
    weights:
        A column with the sampling weight of each row, as in `gpupif.score`. Shares of rows are then shares of weights,
        and numbers of rows sums of weights: people. A row of weight 0 is as if it was not there. Default: none.
    missing:
        "category" (default): missing values are one value of their own; "error": refuse them. "wildcard" is refused: a
        row would be in all pairs of values that it matches, and shares of pairs would be no distribution.

    Returns
    -------
    ToxicPairs
        ``.pairs``, ranked by joint entropy (ties: the earlier columns first), and ``.values``, ranked by rarity (ties:
        fewer rows first, then the earlier columns, then the lower values), both pandas DataFrames; prints as tables;
        ``.to_dict()``, ``.to_json()``.

    Raises
    ------
    InputError
        No rows, fewer columns than a pair takes, unknown columns (ColumnNotFoundError), missing values under "error",
        values that are no categories (ColumnTypeError), an argument out of range, too little memory.
    TableReadError, DeviceError
        As `gpupif.score`.

    Warns
    -----
    NearlyUniqueWarning
        A column with different values in at least 90 % of the rows: it makes every pair that has it unique.

    References
    ----------
    J. D. Cook, Toxic pairs, re-identification, and information theory. Cover and Thomas, Elements of Information
    Theory, 2nd edition, chapter 2. Church and Hanks, Word association norms, mutual information, and lexicography,
    Computational Linguistics 16 (1990), 22-29 (pointwise mutual information).

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"country": ["A"] * 8 + ["B"] * 8, "faith": ["x"] * 7 + ["y"] * 8 + ["x"]})
    >>> found = gpupif.toxic_pairs(people, top=2)
    >>> found.values[["value_1", "value_2", "count", "expected", "rarity"]]
      value_1 value_2  count  expected  rarity
    0       A       y      1       4.0     2.0
    1       B       x      1       4.0     2.0
    >>> found.pairs.loc[0, ["unique_rows", "combinations"]].to_dict()
    {'unique_rows': 2, 'combinations': 4}

    """
    request = CountRequest(columns, weights, missing)
    size, top = _check_size(size), whole_number("top", top, "pairs of values")
    started = time.perf_counter()
    with (
        Reporter() as report,
        announce_compilation(),
        open_counts(table, request, report) as counts,
    ):
        _check_columns(counts.names, size)
        opened = time.perf_counter()
        subsets = list(combinations(range(len(counts.names)), size))
        counted = counts.count(list(map(SetRequest, subsets)), partial(MeasuredSets, top=top))
        total = counted.total
        warn_of_unique(counted.columns, total.rows)
        measured = MeasuredSets(counted.columns, total, top)
        for subset, parts in zip(subsets, counted.found, strict=True):
            measured.add(subset, parts)
    seconds = {"encode": opened - started, "count": time.perf_counter() - opened}
    people = None if total.unit is None else total.units * total.unit
    tables = measured.sets(), measured.values()
    return ToxicPairs(total.rows, counts.names, size, counts.device, *tables, top, seconds, people)


def _check_size(size: Any) -> int:
    """Return the number of columns of a set. Raises InputError."""
    if not is_whole(size) or size not in SIZES:
        raise InputError(f"size: expected 2 (pairs of columns) or 3 (triples), got {brief(size)}.")
    return int(size)


def _check_columns(names: Sequence[Hashable], size: int) -> None:
    """Raise InputError for fewer columns than a pair or a triple has."""
    if len(names) < size:
        raise InputError(
            f"columns: expected at least {size} columns for {SIZES[size]}, got {len(names)} "
            f"({', '.join(map(repr, names))}). Name more, or choose another size."
        )


def _shown(top: int, found: int) -> str:
    """Return how many of `found` items are printed, in words; nothing if all are."""
    return f" (the first {top:,} of {found:,})" if top < found else ""


def _table(title: str, frame: pd.DataFrame, size: int, joined: Mapping[str, str], unit: str) -> PrintedTable:
    """Return a printed table of pairs or triples.

    joined: headings, and for each the prefix of the columns whose values are joined below it. unit: "rows" or "people".
    """
    keys = [key for key in frame.columns if key in HEADINGS]
    names = {key: HEADINGS[key].name.replace("rows", unit) for key in keys}
    # A sum of weights up to 1 estimates that the person is the only one.
    names |= {"unique_share": "unique in the population"} if unit == "people" else {}
    headings = [
        *(Heading(name, text=True) for name in joined),
        *(HEADINGS[key]._replace(name=names[key]) for key in keys),
    ]
    rows = [
        [*(_joined(record, size, prefix, as_found) for prefix in joined.values()), *(record[key] for key in keys)]
        for record in frame.to_dict("records")
    ]
    return draw_table(title, headings, rows, keys=len(joined))


def _joined(record: Mapping[Any, Any], size: int, prefix: str, show: Callable[[Any], str]) -> str:
    """Return the columns, or the values, of a pair or triple in words. prefix: "column" or "value"."""
    return " + ".join(show(record[f"{prefix}_{place}"]) for place in range(1, size + 1))
