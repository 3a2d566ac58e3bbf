"""The queries of a differentially private release: what they ask of a table, and how they are answered with noise.

Nothing that a query refuses depends on the rows of a table. Its domain, bins and bounds come from the user, or, for
counts of unknown values, from a threshold. Rows outside of them, and missing values, are not counted.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..encoding.column import Column, amounts
from ..encoding.plain_values import family, texts_of
from ..errors import ColumnTypeError, InputError
from ..io.documents import read_document
from ..treatment.field_checks import check_keys, is_finite, probability, set_checked
from ..utils.display import as_cell, quoted
from ..utils.validation import as_columns, brief, check_exist, check_path, check_word, is_number
from .accounting import check_delta, check_epsilon
from .ledger import Terms
from .mechanisms import Noise, choice, gaussian, laplace, threshold

# Most cells of a table of counts, and most candidates for a quantile.
MOST_CELLS = 1_000_000
# Steps of a sum for half the width of its bounds: sums are whole numbers, so that their sensitivity is exact.
STEPS = 1 << 30
HALF = 1 << 15
# The errors of values that have no text in common, such as intervals, or numbers of more than 64 bits.
NOT_PLAIN = (pa.ArrowException, OverflowError)
NUMERIC = ("whole", "number", "decimal")
# Candidates for a quantile that bounds make, and the denominator of the quantile.
CANDIDATES, DENOMINATOR = 1_000, 10_000


class TrueCounts(NamedTuple):
    """The exact counts of a table. They never leave without noise.

    columns: the columns by name. combinations: by the columns of a query of counts, the codes and counts of all
    combinations that occur.
    """

    columns: Mapping[Hashable, Column]
    combinations: Mapping[tuple[Hashable, ...], tuple[list[npt.NDArray[Any]], npt.NDArray[np.int64]]]


@dataclass(frozen=True, kw_only=True)
class Query(ABC):
    """A query of one table. epsilon: what it may spend, in nats. name: of its answer. Default: what it asks."""

    ask: ClassVar[str]
    epsilon: Annotated[float, check_epsilon]
    name: Annotated[str | None, _check_text] = None

    def __post_init__(self) -> None:
        set_checked(self)

    @property
    @abstractmethod
    def described(self) -> str:
        """The question in words."""

    @property
    @abstractmethod
    def columns(self) -> dict[Hashable, str]:
        """The columns that are asked about, with the arguments that name them."""

    @abstractmethod
    def noises(self, terms: Terms) -> list[Noise]:
        """Return the noise of the answer. Raises InputError."""

    @abstractmethod
    def exact(self, true: TrueCounts) -> Any:
        """Return what `answered` needs of a table, before anything is spent. Raises ColumnTypeError."""

    @abstractmethod
    def answered(self, exact: Any, noises: Sequence[Noise]) -> dict[str, Any]:
        """Return fields of the answer, drawn anew: `value`, or the rows of `table`, and what goes with it.

        exact: the result of `exact`. noises: the result of `noises`.
        """

    @property
    def keys(self) -> list[Hashable]:
        """The columns of the answer, if it is a table, before its counts."""
        return list(self.columns)


@dataclass(frozen=True, kw_only=True)
class NumberQuery(Query):
    """A query of a column of numbers."""

    column: Annotated[Hashable, _check_name]

    @property
    def columns(self) -> dict[Hashable, str]:
        return {self.column: "column"}

    def numbers(self, true: TrueCounts) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Return the different numbers of the column, and their counts. Missing values are left out.

        Raises ColumnTypeError for a column of another type.
        """
        column = true.columns[self.column]
        kind, name = _type_of(column)
        if name not in (*NUMERIC, "null"):
            raise ColumnTypeError(self.column, kind, "numbers", "Convert them to numbers, or ask for counts.")
        values = amounts(column)
        known = ~np.isnan(values)
        return values[known], column.counts[known]


def _check_text(argument: str, value: Any) -> Any:
    if not isinstance(value, str | None):
        raise InputError(f"{argument}: expected a text, got {brief(value)}.")
    return value


def _check_name(argument: str, value: Any) -> Any:
    if not isinstance(value, Hashable):
        raise InputError(f"{argument}: expected the name of a column, got {brief(value)}.")
    return value


def _as_values(argument: str, values: Any) -> list[Any]:
    """Return a list as values of Python, None for NaN. Raises InputError for an empty list, and for no list."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InputError(f"{argument}: expected a list of values, got {'none' if values is None else brief(values)}.")
    plain = values.tolist() if hasattr(values, "tolist") else list(values)
    if not plain:
        raise InputError(f"{argument}: expected at least one value, got an empty list.")
    return [None if value is None or value != value else value for value in plain]


def check_bins(argument: str, bins: Any) -> list[float]:
    """Return the edges of bins as a list. Raises InputError unless they are ascending numbers, two or more."""
    edges = _as_values(argument, bins)
    if len(edges) < 2 or not all(map(is_finite, edges)):
        raise InputError(f"{argument}: expected a list of edges, two or more numbers; got {brief(bins)}.")
    if not all(low < high for low, high in pairwise(edges)):
        raise InputError(f"{argument}: expected ascending edges, got {brief(edges)}.")
    if len(edges) > MOST_CELLS:
        raise InputError(f"{argument}: expected at most {MOST_CELLS:,} bins, got {len(edges) - 1:,}.")
    return edges


def check_bounds(argument: str, bounds: Any) -> tuple[float, float]:
    """Return the lower and the upper bound; raises InputError if they are missing or the wrong way round."""
    if bounds is None:
        raise InputError(
            f"{argument}: expected bounds=(lowest, highest), got none. Take them from what is known without the table."
        )
    pair = _as_values(argument, bounds)
    if len(pair) != 2 or not all(map(is_finite, pair)):
        raise InputError(f"{argument}: expected two numbers, the lowest and the highest; got {brief(bounds)}.")
    if not pair[0] < pair[1]:
        raise InputError(f"{argument}: expected the lowest below the highest, got {brief(bounds)}.")
    if not (pair[0] / 2 < pair[1] / 2 and math.isfinite(float(pair[1]) - float(pair[0]))):
        raise InputError(f"{argument}: expected a distance between them that is a usual float, got {brief(bounds)}.")
    return float(pair[0]), float(pair[1])


@dataclass(frozen=True, kw_only=True)
class Counts(Query):
    """The number of rows with each combination of values of some columns; fields as of `gpupif.release.counts`."""

    ask: ClassVar[str] = "counts"
    by: Sequence[Hashable]
    values: Any = None
    delta: float | None = None
    mechanism: str = "laplace"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "by", as_columns("by", self.by, None))
        check_word("mechanism", self.mechanism, ("laplace", "gaussian"))
        is_gaussian = self.mechanism == "gaussian"
        if self.values is None and is_gaussian:
            raise InputError("mechanism: a threshold takes 'laplace'. Give values=, or leave mechanism out.")
        if self.values is None and self.delta is None:
            raise InputError(
                "values: expected all values of each column, or delta= for a threshold that hides rare values; got "
                "neither."
            )
        if is_gaussian and self.delta is None:
            raise InputError("delta: expected the delta of Gaussian noise, got none. Give it, or leave mechanism out.")
        if self.values is not None:
            object.__setattr__(self, "values", self._checked_values())
            if self.delta is not None and not is_gaussian:
                raise InputError("delta: Laplace noise on known values needs none. Leave it out.")
        if self.delta is not None:
            object.__setattr__(self, "delta", check_delta("delta", self.delta, "above 0"))

    def _checked_values(self) -> dict[Hashable, list[Any]]:
        """Return the values by column. Raises InputError for an empty domain, and for too large a table."""
        given = self.values if isinstance(self.values, Mapping) or len(self.by) > 1 else {self.by[0]: self.values}
        if not isinstance(given, Mapping):
            raise InputError(f"values: expected a dictionary with a list for each column, got {brief(given)}.")
        check_exist("values", given, self.by, "by")
        domains = {name: _as_values(f"values: column {name!r}", given.get(name)) for name in self.by}
        cells = math.prod(map(len, domains.values()))
        if cells > MOST_CELLS:
            raise InputError(f"values: expected at most {MOST_CELLS:,} cells, got {cells:,}. Take fewer values.")
        for name, domain in domains.items():
            try:
                texts = _texts(domain)
            except NOT_PLAIN:
                raise InputError(f"values: column {name!r}: expected plain values, got {brief(domain)}.") from None
            if len({*texts}) < len(domain):
                raise InputError(f"values: column {name!r}: a value was given twice in {brief(domain)}.")
        return domains

    @property
    def described(self) -> str:
        domain = "values above a threshold" if self.values is None else "given values"
        return f"counts by {', '.join(map(quoted, self.by))} ({domain})"

    @property
    def columns(self) -> dict[Hashable, str]:
        return dict.fromkeys(self.by, "by")

    def noises(self, terms: Terms) -> list[Noise]:
        cells = 2 if terms.replaced else 1
        if self.values is None:
            return [threshold(self.epsilon, self.delta or 0.0, terms.rows, cells)]
        if self.mechanism == "gaussian":
            return [gaussian(self.epsilon, self.delta or 0.0, terms.rows, cells)]
        return [laplace(self.epsilon, terms.rows, cells)]

    def exact(self, true: TrueCounts) -> Any:
        """Return the count of each cell of the given values; without them, pairs of values and count."""
        codes, counts = true.combinations[tuple(self.by)]
        columns = [true.columns[name] for name in self.by]
        if self.values is None:
            labels = [column.values() for column in columns]
            values = [[own[code] for code in codes_of] for own, codes_of in zip(labels, codes, strict=True)]
            return list(zip(zip(*values, strict=True), counts.tolist(), strict=True))
        places, inside = np.zeros(len(counts), np.int64), np.ones(len(counts), bool)
        for column, code in zip(columns, codes, strict=True):
            domain = self.values[column.name]
            _check_type(column, domain)
            place_of = {text: place for place, text in enumerate(_texts(domain))}
            place = np.array([place_of.get(text, -1) for text in value_texts(column)], np.int64)
            inside &= place[code] >= 0
            places = places * len(domain) + place[code]
        return _summed(places[inside], counts[inside], math.prod(map(len, self.values.values())))

    def answered(self, exact: Any, noises: Sequence[Noise]) -> dict[str, Any]:
        [noise] = noises
        if self.values is None:
            passed = noise.drawn({key: count for key, (_, count) in enumerate(exact)})
            # The order of keys depends on the table.
            lines = [(exact[key][0], count) for key, count in passed.items()]
            lines.sort(key=lambda line: [repr(value) for value in line[0]])
        else:
            lines = list(zip(product(*self.values.values()), noise.drawn(exact), strict=True))
        return _table_of_counts(lines, noise)


@dataclass(frozen=True, kw_only=True)
class Histogram(NumberQuery):
    """The number of rows in each bin of a column of numbers; fields as of `gpupif.release.histogram`."""

    ask: ClassVar[str] = "histogram"
    bins: Annotated[Sequence[float], check_bins]

    @property
    def described(self) -> str:
        return f"histogram of {quoted(self.column)} in {len(self.bins) - 1:,} bins"

    @property
    def keys(self) -> list[Hashable]:
        return ["from", "to"]

    def noises(self, terms: Terms) -> list[Noise]:
        return [laplace(self.epsilon, terms.rows, 2 if terms.replaced else 1)]

    def exact(self, true: TrueCounts) -> list[int]:
        """Return the count of each bin."""
        values, counts = self.numbers(true)
        inside = (values >= self.bins[0]) & (values <= self.bins[-1])
        places = np.minimum(np.searchsorted(self.bins, values[inside], "right") - 1, len(self.bins) - 2)
        return _summed(places, counts[inside], len(self.bins) - 1)

    def answered(self, exact: Any, noises: Sequence[Noise]) -> dict[str, Any]:
        [noise] = noises
        return _table_of_counts(zip(pairwise(self.bins), noise.drawn(exact), strict=True), noise)


@dataclass(frozen=True, kw_only=True)
class Mean(NumberQuery):
    """The mean of a column of numbers, and the number of its values; fields as of `gpupif.release.mean`."""

    ask: ClassVar[str] = "mean"
    bounds: Annotated[Any, check_bounds] = None

    @property
    def described(self) -> str:
        return f"mean of {quoted(self.column)} within {as_cell(self.bounds[0])} and {as_cell(self.bounds[1])}"

    def noises(self, terms: Terms) -> list[Noise]:
        # A sum counts from the middle of the bounds: a row shifts it by half their width, or by all of it if replaced.
        shift = terms.rows * STEPS * (2 if terms.replaced else 1)
        return [laplace(self.epsilon / 2, shift), laplace(self.epsilon / 2, terms.rows)]

    @property
    def _middle(self) -> tuple[float, float]:
        """The middle of the bounds, and half their width."""
        low, high = self.bounds
        return low / 2 + high / 2, high / 2 - low / 2

    def exact(self, true: TrueCounts) -> tuple[int, int]:
        """Return the sum of all values in steps from the middle of the bounds, and their number."""
        values, counts = self.numbers(true)
        middle, half = self._middle
        low, high = self.bounds
        steps = np.rint((np.clip(values, low, high) - middle) / half * STEPS).astype(np.int64).clip(-STEPS, STEPS)
        # In two halves, neither of which is too large for 64 bits.
        total = int(steps // HALF @ counts) * HALF + int(steps % HALF @ counts)
        return total, int(counts.sum())

    def answered(self, exact: Any, noises: Sequence[Noise]) -> dict[str, Any]:
        [drawn], [rows] = noises[0].drawn([exact[0]]), noises[1].drawn([exact[1]])
        middle, half = self._middle
        least = max(rows, 1)
        mean = middle + half * min(max(drawn / STEPS / least, -1.0), 1.0)
        errors = noises[0].standard_error / STEPS * half, noises[1].standard_error * abs(mean - middle)
        return {
            "value": mean,
            "count": rows,
            "standard_error": math.hypot(*errors) / least,
            "mechanism": noises[0].loss.kind,
        }


@dataclass(frozen=True, kw_only=True)
class Quantile(NumberQuery):
    """A quantile of a column of numbers: the candidate with the ranks nearest to it, chosen with noise.

    Fields are as of `gpupif.release.quantile`. Of q, steps of 0.0001 count.
    """

    ask: ClassVar[str] = "quantile"
    q: Annotated[float, probability]
    bounds: Any = None
    candidates: Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidates is None:
            object.__setattr__(self, "bounds", check_bounds("bounds", self.bounds))
            return
        given = _as_values("candidates", self.candidates)
        if self.bounds is not None or not all(map(is_finite, given)) or len(given) > MOST_CELLS:
            raise InputError(f"candidates: expected up to {MOST_CELLS:,} numbers, and no bounds; got {brief(given)}.")
        object.__setattr__(self, "candidates", sorted(map(float, given)))

    @property
    def described(self) -> str:
        return f"quantile {self.q:g} of {quoted(self.column)}"

    @property
    def _weights(self) -> tuple[int, int]:
        """The weights of a row below and of a row above a candidate."""
        share = Fraction(self.q).limit_denominator(DENOMINATOR)
        return share.denominator - share.numerator, share.numerator

    def _candidates(self) -> npt.NDArray[np.float64]:
        if self.candidates is not None:
            return np.array(self.candidates)
        low, high = self.bounds
        whole = low.is_integer() and high.is_integer() and high - low <= CANDIDATES * 10
        return np.linspace(low, high, int(high - low) + 1 if whole else CANDIDATES + 1)

    def noises(self, terms: Terms) -> list[Noise]:
        below, above = self._weights
        return [choice(self.epsilon, terms.rows * (below + above if terms.replaced else max(below, above)))]

    def exact(self, true: TrueCounts) -> list[int]:
        """Return the score of each candidate: how far its ranks are from the quantile; 0 if one of them is it.

        A candidate that many rows have, as on heaped data, has the ranks of them all.
        """
        values, counts = self.numbers(true)
        order = np.argsort(values)
        sums = np.concatenate([[0], np.cumsum(counts[order])])
        candidates = self._candidates()
        below = sums[np.searchsorted(values[order], candidates, "left")]
        above = sums[-1] - sums[np.searchsorted(values[order], candidates, "right")]
        equal = sums[-1] - below - above
        weights = self._weights
        too_high = weights[0] * below - weights[1] * (above + equal)
        too_low = weights[1] * above - weights[0] * (below + equal)
        return np.maximum(0, np.maximum(too_high, too_low)).tolist()  # type: ignore[no-any-return]

    def answered(self, exact: Any, noises: Sequence[Noise]) -> dict[str, Any]:
        return {"value": float(self._candidates()[noises[0].draw(exact)]), "mechanism": "permute_and_flip"}


KINDS: Mapping[str, type[Query]] = {kind.ask: kind for kind in (Counts, Histogram, Mean, Quantile)}


def query_from(said: str, given: Any) -> Query:
    """Return the query that a dictionary describes. said: the beginning of errors. Raises InputError."""
    if not isinstance(given, Mapping):
        raise InputError(f"{said}: expected keys and values, got {brief(given)}.")
    kind = next((own for ask, own in KINDS.items() if ask == given.get("ask")), None)
    if kind is None:
        raise InputError(f"{said}: ask: expected {', '.join(map(repr, KINDS))}; got {brief(given.get('ask'))}.")
    keys = {key: value for key, value in given.items() if key != "ask"}
    check_keys(said, kind, keys)
    try:
        return kind(**keys)
    except InputError as error:
        raise error.about(said) from None


def read_queries(given: Any) -> list[Query]:
    """Return queries from a list of queries or dictionaries, or from a file with a list `query`. Raises InputError."""
    said = "queries"
    if not isinstance(given, Sequence) or isinstance(given, str):
        check_path("queries", given, "a file of queries, or a list of them")
        document = read_document("queries", given)
        extra = [key for key in document if key != "query"]
        given, said = document.get("query"), f"queries: {given}"
        if extra or not isinstance(given, list):
            raise InputError(f"{said}: expected queries, each under [[query]]; got {brief(extra or given)}.")
    if not given:
        raise InputError(f"{said}: expected at least one query, got none.")
    queries = [
        own if isinstance(own, Query) else query_from(f"{said}: query {number}", own)
        for number, own in enumerate(given, 1)
    ]
    names = [own.name for own in queries if own.name is not None]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{said}: two queries are called {brief(repeated[0])}. Rename one.")
    return queries


def _summed(places: npt.NDArray[Any], counts: npt.NDArray[np.int64], cells: int) -> list[int]:
    """Return the sum of the counts of each cell. places: the cell of each count."""
    sums = np.zeros(cells, np.int64)
    np.add.at(sums, places, counts)
    return sums.tolist()


def _table_of_counts(lines: Iterable[tuple[tuple[Any, ...], int]], noise: Noise) -> dict[str, Any]:
    """Return fields of an answer. lines: the values of each cell, and its count with noise."""
    said = {"standard_error": noise.standard_error, "mechanism": noise.loss.kind, "threshold": noise.threshold}
    return {"table": [(*values, count) for values, count in lines], **said}


def _type_of(column: Column) -> tuple[Any, str]:
    """Return the type of a column, which is public, and its family, see `family`.

    Objects have none: they may hold texts, which only rows could tell, and a refusal must not depend on rows.
    """
    if isinstance(column.labels, pa.Array):
        return column.labels.type, family(column.labels.type)
    kind = np.asarray(column.labels).dtype
    return kind, {"b": "boolean", "i": "whole", "u": "whole", "f": "number"}.get(kind.kind, str(kind))


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


# By the type of a column: the values that it may have, in words, which values only give noise, and what to do.
_TEXTS = ("texts", lambda value: is_number(value) or _is_truth(value), "Put it in quotes")
_NUMBERS = ("numbers", lambda value: isinstance(value, str) or _is_truth(value), "Write a number, without quotes")
_TYPES: dict[str, tuple[str, Callable[[Any], bool], str]] = {
    "text": _TEXTS,
    # Only rows could tell that all objects are numbers.
    "object": ("texts", is_number, "Put it in quotes"),
    "boolean": ("true or false", lambda value: value is not None and not _is_truth(value), "Write it without quotes"),
    **dict.fromkeys(NUMERIC, _NUMBERS),
}


def _check_type(column: Column, domain: Sequence[Any]) -> None:
    """Raise InputError for values that a column of its type cannot have, and that only give noise."""
    expected, is_wrong, mend = _TYPES.get(_type_of(column)[1], ("", lambda value: False, ""))
    if came := [value for value in domain if is_wrong(value)]:
        raise InputError(
            f"values: column {column.name!r}: expected {expected} by its type, got {brief(came[0])}. {mend}; nothing "
            "was spent."
        )


def value_texts(column: Column) -> list[str | None]:
    """Return the texts of the values of a column by code, as `_texts` has them; None for a missing value."""
    try:
        return _texts(column.values())
    except NOT_PLAIN:
        # Intervals and the like.
        return column.texts()[: column.cardinality]


def _texts(values: Sequence[Any]) -> list[str | None]:
    """Return the texts by which values of all kinds of tables are compared; None for missing ones."""
    texts = iter(texts_of(value for value in values if value is not None))
    return [None if value is None else next(texts) for value in values]
