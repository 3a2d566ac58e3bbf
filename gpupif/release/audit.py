"""The public `audit`: what a workload of queries gives away."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from ..treatment.field_checks import is_finite
from ..utils.display import (
    Displayable,
    Heading,
    as_found,
    draw_line,
    draw_table,
    draw_verdict,
    plural,
    without_sizes,
)
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import as_mapping, brief, whole_number
from .isolated_groups import isolated_groups, refusal
from .linear import need_solvers
from .query_file import AuditedQuery, read_queries
from .query_sets import (
    Membership,
    Numbers,
    RowsByClass,
    condition_of,
    count_rows,
    formal_rows,
    membership,
    nested,
    overlapping,
)
from .row_space import Combination, RowSpace
from .value_bounds import atom_sums, value_bounds

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

COLUMNS = ("finding", "column", "rows", "group", "by", "queries", "low", "high")
# Findings, the worst first.
KINDS = ("value", "bounded", "sum", "count", "set size", "overlap", "number of queries")
HEADINGS = {
    "finding": Heading("finding", text=True),
    "column": Heading("column", text=True),
    "rows": Heading("rows", show=lambda value: f"{value:,}" if value == value and value is not None else "?"),
    "group": Heading("group", text=True),
    "by": Heading("by", text=True),
    "low": Heading("lowest", show=lambda value: "" if value is None else as_found(value)),
    "high": Heading("highest", show=lambda value: "" if value is None else as_found(value)),
}
# Queries of a combination that are written out.
MOST_TERMS = 8
ALL_ROWS = "all rows"


@dataclass(frozen=True)
class Audit(Displayable):
    """Findings on what a workload of queries gives away; made by `gpupif.audit`. Prints as a table.

    queries: int. The number of queries, with `next`.
    rows: int or None. Rows of the table. None without a table.
    k: int. The fewest rows of a group that may be given away. Without a table it is not used.
    atoms: int. Groups of rows that the queries tell apart, the most for any column.
    together: int or None. How many of these make up a small group that was looked for: up to 4, 2 if very many are
        small. None without a table: any number.
    findings: pandas DataFrame. One row for each finding, the worst first, at most `top`; see below.
    disclosed: int. All findings, also those that are not listed. Without a table there may be more, if queries overlap
        in very many ways.
    allowed: bool or None. Whether `next` may be answered. None without `next`.
    seconds: float. Wall time.

    The columns of `findings` are: finding ("value": the value of a single person; "bounded": values that the answers
    bound; "sum" or "count": of a group of fewer than k rows; "set size"; "overlap"; "number of queries"); column (None
    for counts); rows (of the group; None if unknown); group (in the words of the queries that do it); by (these
    queries, in words); queries (how many); low and high (bounds).
    """

    queries: int
    rows: int | None
    k: int
    atoms: int
    together: int | None
    findings: pd.DataFrame
    disclosed: int
    allowed: bool | None
    seconds: float

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        where = "without a table" if self.rows is None else f"over {self.rows:,} {plural(self.rows, 'row')}"
        asked = f"{self.queries:,} {'query' if self.queries == 1 else 'queries'} {where}"
        if self.allowed is not None:
            answer = "may be answered: it adds no finding" if self.allowed else "must not be answered: it adds findings"
            asked = f"The next query {answer}; {asked}"
        limit = "" if self.rows is None else f", with k = {self.k}"
        if not self.disclosed:
            return [f"{asked}: nothing found{limit}."]
        said = [f"{asked}: {self.disclosed:,} {plural(self.disclosed, 'finding')}{limit}."]
        worst = self.findings.iloc[0]
        group = "" if redact or not worst["group"] else f" ({worst['group']})"
        kind = {
            "value": f"The value of {worst['column']} of a single person{group} follows from",
            "bounded": f"Values of {worst['column']}{group} are bounded by",
            "number of queries": "There are too many queries:",
        }.get(worst["finding"], f"Worst: {worst['finding']}{group}, from")
        said.append(f"{kind} {without_sizes(worst['by']) if redact else worst['by']}.")
        if self.rows is None:
            said.append("Without the table the number of rows in a group is not known.")
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary for JSON."""
        document = super().to_dict()
        document["findings"] = [
            {key: value for key, value in own.items() if value is not None} for own in document["findings"]
        ]
        return document

    def __repr__(self) -> str:
        return f"<Audit of {self.queries:,} queries: {self.disclosed:,} {plural(self.disclosed, 'finding')}>"

    def draw(self, console: Console) -> None:
        draw_verdict(self, console)
        if self.disclosed:
            shown = [key for key in HEADINGS if self.findings[key].notna().any()]
            title = "Findings, the worst first"
            title += f" (the first {len(self.findings):,} of {self.disclosed:,})" * (
                len(self.findings) < self.disclosed
            )
            rows = [["" if own[key] is None else own[key] for key in shown] for own in self.findings.to_dict("records")]
            console.print()
            console.print(draw_table(title, [HEADINGS[key] for key in shown], rows))
        console.print()
        apart = f"The queries tell {self.atoms:,} {plural(self.atoms, 'group')} of rows apart"
        looked = f"up to {self.together} of them together and pairs of queries were looked at"
        looked = "what queries isolate together was looked for" if self.together is None else looked
        draw_line(console, f"{apart}; {looked}, in {self.seconds:.2f} s.", "dim")


def audit(
    queries: Any,
    table: Any = None,
    *,
    k: int = 5,
    most: int | None = None,
    overlap: int | None = None,
    bounds: Mapping[str, Sequence[float | None]] | None = None,
    width: float = 0.0,
    next: Any = None,  # noqa: A002
    top: int = 20,
) -> Audit:
    """Say what the answers to a workload of queries give away about single people and small groups.

    Rows that are in exactly the same queries are one group. Sums and means of a column are linear equations over the
    sums of groups; counts are equations over their sizes. A group of fewer than k rows whose sum follows from the
    answers is disclosed: exactly if its unit vector is in the row space of queries x groups over the rational numbers.
    So individual trackers, general trackers and "the mean before and after Mr R left" are found, whatever the answers.
    The sizes of all sets, and with them the sums behind means, count as known; so does the number of all rows.

    Groups are looked at alone, and up to four together; where more than 2,000 of them are smaller than k, two together.
    Pairs of queries are looked at by their difference. What only more groups together give away is not looked for.

    Without a table the queries are compared by their definitions alone. Each smallest set of groups whose sum follows
    from all queries together is a finding, for it may be a small group; but not the set of a query itself, unless its
    answer followed from the queries before it. So what is a finding stays so when queries are added.

    Parameters
    ----------
    queries:
        The workload: the path of a file of TOML, JSON or YAML with a list ``query``, or a list of dictionaries, with
        the keys ``name``, ``kind`` ("count", the default, "sum" or "mean"), ``column`` (for sums and means; rows
        without a value there are left out) and ``where`` (a condition such as ``age >= 30 and not county in ('Kent')``;
        default: all rows).
    table:
        As in `gpupif.score`: any frame, files, or a Dask DataFrame. None (default): queries are compared by their
        definitions alone, as if each combination of values that conditions name had rows. Only values of columns in
        conditions are used, and whether the summed columns have a value; with ``bounds`` also the answers.
    k:
        The fewest rows of a group: each query has to have k to n - k of the n rows. 2 or more, default 5.
    most:
        The most queries. Default: any number.
    overlap:
        The most rows that two queries on the same column may have in common. Default: any number.
    bounds:
        By summed column, the lowest and the highest value that a cell may have; None for no bound. Two linear programs
        for each group bound its values from the answers, to about 6 digits. At most 1,000 groups. Default: none.
    width:
        With ``bounds``: values that are bounded within this width are disclosed. Default: 0, values that follow.
    next:
        A query, in any of these forms. The result says whether it may be answered after ``queries``: whether it adds no
        finding. The decision uses no answers, so that a refusal gives nothing away about them. Default: none.
    top:
        How many findings to list; 1 or more, default 20.

    Returns
    -------
    Audit
        ``.findings``, a pandas DataFrame, the worst first; ``.allowed``; prints as a table; ``.to_dict()``.

    Raises
    ------
    InputError
        Queries that are none, two of one name, unknown columns (ColumnNotFoundError), conditions on other types than
        the column has, a sum of a column of other values than numbers, queries that overlap in too many ways without
        a table, an argument out of range, bounds without a table or with ``next``, SciPy not installed.
    TableReadError, DeviceError
        As `gpupif.score`.

    References
    ----------
    Denning, Denning & Schwartz 1979, The tracker: a threat to statistical database security. Dobkin, Jones & Lipton
    1979, Secure databases: protection against user influence. Chin & Ozsoyoglu 1982, Auditing and inference control in
    statistical databases. Kenthapadi, Mishra & Nissim 2005, Simulatable auditing.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> staff = pd.DataFrame({"name": [*"ABCDEFGHI", "R"], "salary": [30, 32, 31, 35, 33, 36, 30, 31, 34, 90]})
    >>> before = {"name": "mean before", "kind": "mean", "column": "salary"}
    >>> after = {**before, "name": "mean after", "where": "not name = 'R'"}
    >>> gpupif.audit([before, after], staff).findings.loc[0, ["finding", "group", "by"]].to_dict()
    {'finding': 'value', 'group': 'name = R', 'by': 'mean before × 10 − mean after × 9'}

    """
    need_solvers("audit")
    asked = read_queries(queries)
    k, top = whole_number("k", k, "rows", 2), whole_number("top", top, "findings")
    most = None if most is None else whole_number("most", most, "queries")
    overlap = None if overlap is None else whole_number("overlap", overlap, "rows", 0)
    limits = _check_bounds(bounds, width, asked, table is not None, next is not None)
    if table is None and overlap is not None:
        raise InputError("overlap: expected a table, in which rows are counted, got none. Give the table.")
    started = time.perf_counter()
    more = [] if next is None else read_queries(next, "next")
    workload = read_queries([*asked, *more])
    with Reporter() as report, announce_compilation():
        rows = formal_rows(workload) if table is None else count_rows(table, workload, list(limits), report)
        run = _Run(rows, k, most, overlap, limits, float(width))
        findings = run.findings(workload)
        allowed = None
        if more:
            before = {_key(own): own for own in run.findings(asked) if own["finding"] != "number of queries"}
            now = {_key(own) for own in findings}
            allowed = now <= before.keys()
            # What was given away stays so, even if the next query tells its rows apart.
            findings = sorted([*findings, *(own for key, own in before.items() if key not in now)], key=_order)
        if not run.are_all and (allowed or not findings):
            raise refusal()
        shown = [own | (own["shown"]() if "shown" in own else {}) for own in findings[:top]]
    import pandas as pd

    frame = pd.DataFrame([[own.get(key) for key in COLUMNS] for own in shown], columns=list(COLUMNS), dtype=object)
    seconds = time.perf_counter() - started
    together = None if table is None else run.together
    return Audit(len(workload), rows.rows, k, run.atoms, together, frame, len(findings), allowed, seconds)


def _check_bounds(
    bounds: Any, width: Any, queries: Sequence[AuditedQuery], has_table: bool, has_next: bool
) -> dict[str, Any]:
    """Return the lowest and highest value by column. Raises InputError."""
    if not is_finite(width) or width < 0:
        raise InputError(f"width: expected a number, 0 or more; got {brief(width)}.")
    summed = list(dict.fromkeys(query.column for query in queries if query.column is not None))
    given = as_mapping("bounds", bounds, summed, summed, table=False)
    if given and (not has_table or has_next):
        came = "next, which is decided without answers" if has_next else "no table"
        raise InputError(f"bounds: need the answers, which only a table gives; got {came}. Leave the bounds out.")
    limits = {}
    for name, pair in given.items():
        ends = list(pair) if isinstance(pair, list | tuple) and len(pair) == 2 else [math.nan] * 2
        are_finite = all(end is None or is_finite(end) for end in ends)
        ends = [infinite if end is None else end for end, infinite in zip(ends, (-math.inf, math.inf), strict=True)]
        if not are_finite or not ends[0] < ends[1]:
            raise InputError(
                f"bounds: column {name!r}: expected the lowest and the highest value, such as (0, 100) or (0, None); "
                f"got {brief(pair)}."
            )
        limits[str(name)] = tuple(map(float, ends))
    return limits


def _key(finding: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what makes a finding the same finding in a larger workload."""
    return finding["finding"], finding.get("column"), finding["who"]()


def _order(finding: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return what orders findings, the worst first."""
    return KINDS.index(finding["finding"]), finding.get("rows") or 0, finding.get("queries", 0)


@dataclass
class _Run:
    """An audit of workloads over the same rows. The fields are those of `audit`; atoms, together: see `Audit`.

    are_all: whether all findings without a table were found.
    """

    rows: RowsByClass
    k: int
    most: int | None
    overlap: int | None
    limits: Mapping[str, tuple[float, float]]
    width: float
    atoms: int = 0
    together: int = 4
    are_all: bool = True

    def findings(self, queries: Sequence[AuditedQuery]) -> list[dict[str, Any]]:
        """Return all findings, the worst first. The result of "who" tells groups apart, see `_key`."""
        found: list[dict[str, Any]] = []
        number, has_table = len(queries), self.rows.rows is not None
        if self.most is not None and number > self.most:
            by = f"{number:,}, at most {self.most:,}"
            found.append({"finding": "number of queries", "by": by, "queries": number, "who": lambda: number})
        columns: dict[str | None, list[AuditedQuery]] = {}
        for query in queries:
            columns.setdefault(query.column, []).append(query)
        for column, own in columns.items():
            conditions = [condition_of(query, has_table) for query in own]
            if column is None and has_table:
                conditions.append(None)
            matrix = membership(self.rows, conditions)
            self.atoms = max(self.atoms, len(matrix.sizes))
            found += _OfColumn(self, column, own, matrix).findings()
        return sorted(found, key=_order)


@dataclass
class _OfColumn:
    """The findings of queries on one column, or of counts; the last query of the matrix may be of all rows.

    groups: by atom, the groups with this atom that are given away.
    """

    run: _Run
    column: str | None
    queries: Sequence[AuditedQuery]
    matrix: Membership
    groups: dict[int, list[tuple[int, ...]]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of the queries of the matrix."""
        return [query.name for query in self.queries] + [ALL_ROWS] * (self.matrix.queries - len(self.queries))

    def findings(self) -> list[dict[str, Any]]:
        """Return all findings."""
        matrix, run = self.matrix, self.run
        if run.rows.rows is None:
            isolated, are_all = isolated_groups(matrix)
            run.are_all &= are_all
            return [self._group(atoms, combination) for atoms, combination in isolated]
        space, found = RowSpace(matrix), []
        for atom in space.candidates().tolist():
            if matrix.sizes[atom] < run.k:
                combination = None if atom in space.certain else space.combination([atom])
                if combination or atom in space.certain:
                    found.append(self._group((atom,), combination, space))
        groups, together = space.small_groups(run.k)
        run.together = min(run.together, together)
        for atoms in groups:
            combination = space.combination(atoms)
            if combination is not None:
                found.append(self._group(atoms, combination))
        for outer, inner in nested(matrix, run.k):
            atoms = tuple(np.flatnonzero(matrix.holds(outer) & ~matrix.holds(inner)).tolist())
            if not self._is_given_away(atoms):
                found.append(self._group(atoms, Combination({outer: 1, inner: -1}, 1)))
        return [*found, *self._set_sizes(), *self._overlaps(), *self._bounded()]

    def _group(
        self, atoms: tuple[int, ...], combination: Combination | None, space: RowSpace | None = None
    ) -> dict[str, Any]:
        """Return the finding of a group. combination: that gives it away. If None, `space` has it when it is shown."""
        for atom in atoms:
            self.groups.setdefault(atom, []).append(atoms)
        rows = None if self.run.rows.rows is None else int(self.matrix.sizes[list(atoms)].sum())

        def shown() -> dict[str, Any]:
            own = combination or (space and space.combination(atoms))
            assert own
            group = self._describe(atoms, list(own.numbers))
            return {"group": group, "by": self._in_words(own), "queries": len(own.numbers)}

        kind = "count" if self.column is None else "value" if rows == 1 else "sum"
        finding: dict[str, Any] = {"finding": kind, "column": self.column, "rows": rows, "shown": shown}
        if combination is not None:
            finding["queries"] = len(combination.numbers)
        return finding | {"who": lambda: self._rows(atoms).tobytes()}

    def _in_words(self, combination: Combination) -> str:
        """Return a combination of queries in words, such as "mean before × 10 − mean after × 9"."""
        names, sizes, terms = self.names, self.matrix.set_sizes, list[str]()
        for query, number in sorted(combination.numbers.items(), key=lambda own: -own[1]):
            is_mean = query < len(self.queries) and self.queries[query].kind == "mean"
            times = abs(number) * (int(sizes[query]) or 1 if is_mean else 1)
            sign = ("− " if number < 0 else "+ ") if terms else "−" if number < 0 else ""
            unknown = " × its rows" * (is_mean and not sizes[query])
            terms.append(f"{sign}{names[query]}{f' × {times:,}' if times != 1 else ''}{unknown}")
        said = " ".join(terms[:MOST_TERMS])
        if len(terms) > MOST_TERMS:
            return f"{len(terms):,} queries: {said} ..."
        return said if combination.denominator == 1 else f"({said}) / {combination.denominator:,}"

    def _rows(self, atoms: Sequence[int]) -> Numbers:
        """Return the places of some atoms' rows in `RowsByClass`."""
        return np.flatnonzero(np.isin(self.matrix.atom, atoms))

    def _describe(self, atoms: Sequence[int], queries: Sequence[int]) -> str:
        """Return some atoms in words, those of the conditions of some queries."""
        conditions = [self.queries[query].condition for query in queries if query < len(self.queries)]
        return self.run.rows.describe(self._rows(atoms), conditions)

    def _is_given_away(self, atoms: Sequence[int]) -> bool:
        """Return whether groups that are given away make up these atoms."""
        inside = [group for atom in atoms for group in self.groups.get(atom, ()) if {*atoms}.issuperset(group)]
        return {*atoms} == {atom for group in inside for atom in group}

    def _set_sizes(self) -> Iterator[dict[str, Any]]:
        """Yield the queries whose sets are too small or too large."""
        k, rows = self.run.k, int(self.run.rows.rows or 0)
        for place, (name, size) in enumerate(zip(self.names, self.matrix.set_sizes.tolist(), strict=True)):
            # All rows are of no use to anybody but in a difference, which is looked for.
            if k <= size <= rows - k or size == rows:
                continue
            if size >= k or not size or not self._is_given_away(np.flatnonzero(self.matrix.holds(place)).tolist()):
                by = f"{name}, expected {k:,} to {max(k, rows - k):,} rows"
                own = {"rows": size, "by": by, "queries": 1, "who": partial(str, name)}
                yield {"finding": "set size", "column": self.column, **own}

    def _overlaps(self) -> Iterator[dict[str, Any]]:
        """Yield the pairs of queries that have too many rows in common."""
        if self.run.overlap is not None:
            for a, b, common in overlapping(self.matrix, self.run.overlap):
                if max(a, b) < len(self.queries):
                    pair = self.queries[a].name, self.queries[b].name
                    own = {"rows": common, "by": " and ".join(pair), "queries": 2, "who": partial(tuple, pair)}
                    yield {"finding": "overlap", "column": self.column, **own}

    def _bounded(self) -> Iterator[dict[str, Any]]:
        """Yield the groups whose values the answers bound."""
        run, matrix, column = self.run, self.matrix, self.column
        if column is None or column not in run.limits:
            return
        sums = atom_sums(run.rows, matrix, column)
        for bound in value_bounds(matrix, sums, column, *run.limits[column], run.width):
            rows = int(matrix.sizes[bound.atom])
            if rows > 1 or (bound.atom,) not in self.groups.get(bound.atom, ()):
                asked = [query for query in range(matrix.queries) if matrix.holds(query, np.array([bound.atom]))]
                own: dict[str, Any] = {"rows": rows, "low": bound.low, "high": bound.high, "queries": len(asked)}
                own |= {"group": self._describe([bound.atom], asked), "by": f"the answers and the bounds of {column}"}
                yield {"finding": "bounded", "column": column, **own}
