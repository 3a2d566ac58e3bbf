"""The public `gpupif.release`: differentially private counts, histograms, means and quantiles, charged to a budget."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ..encoding.column import Column
from ..marginals.open_counts import open_counts
from ..marginals.request import CountRequest
from ..marginals.set_counts import Find, SetRequest, Total
from ..utils.display import Displayable, Heading, as_cell, as_text, draw_verdict, plural
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import Columns, check_exist
from .accounting import needs
from .fingerprint import fingerprints
from .ledger import Budget, LedgerState, as_budget
from .queries import Counts, Histogram, Mean, Quantile, Query, TrueCounts, read_queries
from .table_results import draw_cells

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console


@dataclass(frozen=True)
class Answer(Displayable):
    """A differentially private answer; made by `gpupif.release`. Prints as a table.

    name: str. What was asked, or the name that the query has.
    ask: str. "counts", "histogram", "mean" or "quantile".
    epsilon: float. What the answer spent, in nats. delta: float or None. Of a threshold or of Gaussian noise.
    mechanism: str. "discrete_laplace", "discrete_gaussian" or "permute_and_flip".
    table: pandas DataFrame or None. Counts: a row for each cell, column "count" last. Counts are unbiased: they may be
        below 0.
    value: float or None. The mean or the quantile.
    count: int or None. The number of values behind a mean, with noise of its own.
    standard_error: float or None. The standard deviation of the noise of each count; about that of a mean. The error of
        a sample is not in it.
    threshold: int or None. The least noisy count that is shown; None where all cells are.
    """

    name: str
    ask: str
    epsilon: float
    delta: float | None
    mechanism: str
    table: pd.DataFrame | None = None
    value: float | None = None
    count: int | None = None
    standard_error: float | None = None
    threshold: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as a dictionary for JSON, without what it lacks."""
        return {name: value for name, value in super().to_dict().items() if value is not None}

    def __repr__(self) -> str:
        return f"<Answer: {as_text(self.name)}>"

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        if self.table is None:
            shown = "hidden" if redact else as_cell(self.value)
        else:
            shown = f"{len(self.table):,} {plural(len(self.table), 'count')}"
            shown += "" if self.threshold is None else f" of at least {self.threshold:,}"
        error = "" if self.standard_error is None else f", standard error {as_cell(self.standard_error)}"
        return [f"{as_text(self.name)}: {shown}{error} (epsilon {as_cell(self.epsilon)})."]

    def draw(self, console: Console) -> None:
        draw_verdict(self, console)
        if self.table is not None and len(self.table):
            rows = self.table.to_numpy(object).tolist()
            draw_cells(console, "Counts", list(self.table.columns[:-1]), [Heading("count")], rows)


@dataclass(frozen=True)
class Release(Displayable):
    """Differentially private answers of one release; made by `gpupif.release.answer`. Prints as tables.

    answers: list of `Answer`, in the order of the queries.
    ledger: the state of the ledger after the release: its terms, charges, and what they spent.
    """

    answers: Sequence[Answer]
    ledger: LedgerState

    def to_dict(self) -> dict[str, Any]:
        """Return the release as a dictionary for JSON; it may be published.

        head: the digest of the ledger's line that was charged. spent: epsilon of all charges. left: what is left of it.
        """
        return {"answers": [answer.to_dict() for answer in self.answers], "budget": self.ledger.facts}

    def __repr__(self) -> str:
        return f"<Release: {len(self.answers)} {plural(len(self.answers), 'answer')}>"

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        number = len(self.answers)
        return [f"{number:,} {plural(number, 'answer')} with noise.", *self.ledger.sentences]

    def draw(self, console: Console) -> None:
        draw_verdict(self, console)
        for answer in self.answers:
            console.print()
            answer.draw(console)


def answer(table: Any, queries: Any, budget: Budget | Any) -> Release:
    """Answer queries of a table with differential privacy. All are charged together, before the first is answered.

    Parameters
    ----------
    table:
        As in `gpupif.score`: a frame of any library in memory, files that may be larger than memory, a Dask DataFrame.
        All columns are read: the ledger belongs to the table with their values.
    queries:
        The path of a file with a list ``[[query]]`` (.toml, .json, .yaml), or a list of such dictionaries: ``ask``, one
        of "counts", "histogram", "mean" and "quantile", and the arguments of the function of that name.
    budget:
        A `gpupif.Budget`, or the path of its ledger.

    Returns
    -------
    Release
        ``.answers``, and what is left of the budget; prints as tables; ``.to_dict()``, ``.to_json()``.

    Raises
    ------
    InputError
        A wrong query, a budget that does not suffice (the ledger and the queries decide, never the table), a damaged
        ledger, a ledger of another table, unknown columns (ColumnNotFoundError), a column that is no numbers
        (ColumnTypeError), OpenDP not installed. Nothing is spent then.
    TableReadError, OutputError, DeviceError
        As `gpupif.score`; a ledger that is locked or cannot be written.

    References
    ----------
    Dwork and Roth, The algorithmic foundations of differential privacy, 2014, chapter 3. Canonne, Kamath and Steinke,
    The discrete Gaussian for differential privacy, 2020. McKenna and Sheldon, Permute-and-flip, 2020. Casacuberta and
    others, Widespread underestimation of sensitivity in differentially private libraries, 2022 (why sums are whole
    numbers here). Noise is drawn by OpenDP.

    """
    return answer_as(table, queries, budget)


def answer_as(
    table: Any, queries: Any, budget: Budget | Any, identity: str | None = None, remarks: Sequence[str] = ()
) -> Release:
    """Answer queries as `answer` does.

    identity: a text that tells tables apart, for a table that changes. Default: its fingerprint. remarks: what the
    charge says besides the queries.
    """
    asked, ledger = read_queries(queries), as_budget(budget)
    noises = [query.noises(ledger.terms) for query in asked]
    losses = [noise.loss for noise in chain(*noises)]
    # It says what is left, which answers go out with.
    needs("dp_accounting")
    ledger.check(losses)
    sets = list(dict.fromkeys(tuple(query.by) for query in asked if isinstance(query, Counts)))
    with Reporter() as report, announce_compilation(), open_counts(table, CountRequest(), report) as counts:
        names = list(counts.names)
        for query in asked:
            for name, argument in query.columns.items():
                check_exist(argument, [name], names)
        requests = [SetRequest([names.index(name) for name in by]) for by in sets] or [SetRequest([0])]
        counted = counts.count(requests, _make_combinations)
        true = TrueCounts(
            {column.name: column for column in counted.columns},
            {by: _together(parts) for by, parts in zip(sets, counted.found, strict=False)},
        )
        exact = [query.exact(true) for query in asked]
        identities = fingerprints(counted) if identity is None else [identity]
    names_said = [query.described if query.name is None else f"{query.name}: {query.described}" for query in asked]
    ledger.charge([*names_said, *remarks], losses, identities)
    # From here on the release is paid for, whatever becomes of it.
    answers = [_answer(*own) for own in zip(asked, exact, noises, strict=True)]
    return Release(answers, ledger.state)


def counts(
    table: Any,
    by: Columns,
    budget: Budget | Any,
    *,
    epsilon: float,
    values: Any = None,
    delta: float | None = None,
    mechanism: str = "laplace",
) -> Answer:
    """Count the rows of each combination of values, with differential privacy. See `answer` for tables and errors.

    by: columns. values: a list of all values of each column, None for missing; a list alone for a single column. Other
    rows are not counted. Default: the values whose noisy count passes a threshold, which takes `delta`. budget: a
    `gpupif.Budget`, or the path of its ledger. epsilon: what may be spent, nats. delta: of the threshold or of Gaussian
    noise. mechanism: "laplace" (default) or "gaussian" (less noise where a person is in many cells).

    Examples
    --------
    >>> import gpupif, tempfile
    >>> people = gpupif.datasets.census(10_000, seed=1)
    >>> folder = tempfile.TemporaryDirectory()
    >>> budget = gpupif.Budget(f"{folder.name}/ledger.json", epsilon=1)
    >>> found = gpupif.release.counts(people, "sex", budget, epsilon=0.5, values=["Female", "Male"])
    >>> list(found.table.columns), budget.left
    (['sex', 'count'], 0.5)
    >>> folder.cleanup()

    """
    query = Counts(by=by, epsilon=epsilon, values=values, delta=delta, mechanism=mechanism)  # type: ignore[arg-type]
    return answer(table, [query], budget).answers[0]


def histogram(table: Any, column: Hashable, budget: Budget | Any, *, bins: Sequence[float], epsilon: float) -> Answer:
    """Count the rows whose number is in each bin, with differential privacy. See `answer` for tables and errors.

    bins: edges, ascending; a bin holds its lower edge, the last bin both. Values outside are not counted. budget: a
    `gpupif.Budget`, or the path of its ledger. epsilon: what may be spent, nats.
    """
    return answer(table, [Histogram(column=column, bins=bins, epsilon=epsilon)], budget).answers[0]


def mean(table: Any, column: Hashable, budget: Budget | Any, *, bounds: Sequence[float], epsilon: float) -> Answer:
    """Return the mean of a column of numbers, with differential privacy. See `answer` for tables and errors.

    bounds: the lowest and the highest value, from what is known without the table; values outside count as the bound.
    Missing values are left out. budget: a `gpupif.Budget`, or the path of its ledger. epsilon: what may be spent, nats;
    half of it for the sum, half for the number of values.
    """
    return answer(table, [Mean(column=column, bounds=bounds, epsilon=epsilon)], budget).answers[0]


def quantile(
    table: Any,
    column: Hashable,
    q: float,
    budget: Budget | Any,
    *,
    bounds: Sequence[float] | None = None,
    candidates: Sequence[float] | None = None,
    epsilon: float,
) -> Answer:
    """Return a quantile of a column of numbers, with differential privacy. See `answer` for tables and errors.

    q: from 0 to 1; 0.5 is the median. bounds: the lowest and the highest candidate: all whole numbers between whole
    bounds up to 10,000 apart, else 1,001 numbers. candidates: a list in place of bounds. budget: a `gpupif.Budget`, or
    the path of its ledger. epsilon: what may be spent, nats.
    """
    query = Quantile(column=column, q=q, bounds=bounds, candidates=candidates, epsilon=epsilon)
    return answer(table, [query], budget).answers[0]


def _answer(query: Query, exact: Any, noises: Sequence[Any]) -> Answer:
    """Return the answer to a query. exact: what `Query.exact` returned. noises: its noise."""
    import pandas as pd

    found = query.answered(exact, noises)
    if "table" in found:
        found["table"] = pd.DataFrame.from_records(found["table"], columns=[*query.keys, "count"])
    name = query.described if query.name is None else query.name
    return Answer(name, query.ask, query.epsilon, getattr(query, "delta", None), **found)


def _make_combinations(columns: Sequence[Column], total: Total) -> Find:
    """Return a function that returns the codes and counts of all combinations."""
    return _combinations


def _combinations(set_: Sequence[int], counter: Any, place: int) -> Any:
    found = counter.combinations(place, ordered=False)
    return [*found.codes, found.counts]


def _together(parts: Sequence[Any]) -> tuple[list[Any], Any]:
    """Return the codes and counts of the combinations of all partitions."""
    *codes, counts_of = map(np.concatenate, zip(*parts, strict=True))
    return codes, counts_of
