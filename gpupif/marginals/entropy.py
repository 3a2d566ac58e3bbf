"""Entropies of columns of a table, in bits: the information of its columns, together and about each other.

S(X) is the sum of c log2 c over the counts c of the values of X, and N = n log2 n for n rows. The entropy of X is (N -
S(X)) / n. All measures are sums of such terms (`MEASURES`). The sums are the same wherever rows are counted, so a
measure that must be 0 is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..encoding.column import Column
from ..engines.base import Counter
from ..engines.cpu.counting import number_rows
from ..rows.threads import Workers
from ..utils.docs import documented_as
from ..utils.information import LogSum, Sizes
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import Columns, as_columns
from .count_statistics import NEARLY_NONE, as_often_as_parts
from .open_counts import open_counts
from .request import CountRequest
from .set_counts import SetCounts, SetRequest, Total


def entropy(
    table: Any,
    columns: Columns | None = None,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Return the entropy of a column, or the joint entropy of several: H(X) = -sum of p(x) log2 p(x).

    It is the mean over the rows of the information in the values of these columns. Each bit halves the number of rows
    that may be a person's row.

    Parameters
    ----------
    table:
        As in `gpupif.score`: a pandas, Polars or cuDF DataFrame, a pyarrow Table, the path of a file, a folder or a
        pattern, or a Dask DataFrame, which is computed at once. Files that do not fit into memory are counted on disk,
        chunk by chunk. The result is the same, to the last bit, in every way and on every device (see `gpupif.config`).
    columns:
        A column, or a list or tuple of columns. A tuple that is the name of a column is that column. Default: all
        except the column of weights.
    weights:
        A column with the sampling weight of each row, as in `gpupif.score`. p(x) is then a share of weights, the people
        that rows stand for. A row of weight 0 is as if it was not there. Default: none.
    missing:
        "category" (default): missing values are one value of their own; "error": refuse them. "wildcard" is refused: a
        row would have all values that it matches, and shares of values would be no distribution.

    Returns
    -------
    float
        Bits, from 0 (one value, exactly 0) to log2 n for n rows (all different).

    Raises
    ------
    InputError
        No rows, no such column, missing values under "error", values that are no categories (ColumnTypeError), weights
        that are missing, negative or infinite, or sum to 0; too little memory.
    TableReadError, DeviceError
        As `gpupif.score`.

    References
    ----------
    Cover and Thomas, Elements of Information Theory, 2nd edition, sections 2.1 and 2.2.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"sex": ["f", "f", "m", "m"], "eyes": ["blue", "brown", "brown", "brown"]})
    >>> gpupif.information.entropy(people, "sex")
    1.0
    >>> gpupif.information.entropy(people, ["sex", "eyes"])
    1.5

    """
    return measure_sets("entropy", table, weights, missing, columns=columns)


@documented_as(entropy)
def conditional_entropy(
    table: Any,
    columns: Columns,
    given: Columns,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Return the conditional entropy H(X | Y) = H(X, Y) - H(Y): the information in X for somebody who knows Y.

    Parameters
    ----------
    columns, given:
        X and Y: for each a column or a list of columns. If `given` is an empty list, nothing is known.

    Returns
    -------
    float
        Bits, from 0 (exactly 0 if Y determines X) to H(X) (X and Y independent).

    References
    ----------
    Cover and Thomas, Elements of Information Theory, 2nd edition, section 2.2.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"sex": ["f", "f", "m", "m"], "eyes": ["blue", "brown", "brown", "brown"]})
    >>> gpupif.information.conditional_entropy(people, "eyes", given="sex")
    0.5

    """
    return measure_sets("conditional_entropy", table, weights, missing, columns=columns, given=given)


@documented_as(entropy)
def mutual_information(
    table: Any,
    a: Columns,
    b: Columns,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Return the mutual information I(A; B) = H(A) + H(B) - H(A, B): the information in A about B, and in B about A.

    Parameters
    ----------
    a, b:
        A and B: for each a column or a list of columns.

    Returns
    -------
    float
        Bits, from 0 (exactly 0 if A and B are independent in the table) to the smaller of H(A) and H(B).

    References
    ----------
    Cover and Thomas, Elements of Information Theory, 2nd edition, sections 2.3 and 2.4.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"sex": ["f", "f", "m", "m"], "eyes": ["blue", "brown", "brown", "brown"]})
    >>> round(gpupif.information.mutual_information(people, "sex", "eyes"), 3)
    0.311

    """
    return measure_sets("mutual_information", table, weights, missing, a=a, b=b)


@documented_as(entropy)
def total_correlation(
    table: Any,
    columns: Columns | None = None,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Return the total correlation: the sum of all H(X_i), less H(X_1, ..., X_m).

    It is the information that columns share. Information that m columns share counts m - 1 times.

    Returns
    -------
    float
        Bits, from 0 (exactly 0 if all columns are independent of each other) to the sum of all H(X_i) except the
        largest. For two columns it is their mutual information.

    References
    ----------
    Watanabe, Information theoretical analysis of multivariate correlation, IBM Journal of Research and Development 4
    (1960), 66-82.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> gpupif.information.total_correlation(pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "sum": [0, 1, 1, 0]}))
    1.0

    """
    return measure_sets("total_correlation", table, weights, missing, columns=columns)


@documented_as(entropy)
def dual_total_correlation(
    table: Any,
    columns: Columns | None = None,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Return the dual total correlation: H(X_1, ..., X_m), less the sum of all H(X_i | all other columns).

    It is the information that columns share, counted once.

    Returns
    -------
    float
        Bits, from 0 (exactly 0 if all columns are independent of each other) to H(X_1, ..., X_m) (each column follows
        from the others). For two columns it is their mutual information.

    References
    ----------
    Han, Nonnegative entropy measures of multivariate symmetric correlations, Information and Control 36 (1978),
    133-156.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> table = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "sum": [0, 1, 1, 0]})
    >>> gpupif.information.dual_total_correlation(table)
    2.0

    """
    return measure_sets("dual_total_correlation", table, weights, missing, columns=columns)


@documented_as(entropy)
def residual_entropy(
    table: Any,
    columns: Columns | None = None,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Return the residual entropy: the sum of all H(X_i | all other columns), the information in single columns only.

    The residual entropy and the dual total correlation add up to the joint entropy. Abdallah and Plumbley call it
    residual entropy, other authors erasure entropy.

    Returns
    -------
    float
        Bits, from 0 (exactly 0 if each column follows from the others) to the joint entropy (all independent).

    References
    ----------
    Abdallah and Plumbley, A measure of statistical complexity based on predictive information with application to
    finite spin systems, Physics Letters A 376 (2012), 275-281. Verdu and Weissman, The information lost in erasures,
    IEEE Transactions on Information Theory 54 (2008), 5030-5058.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> gpupif.information.residual_entropy(pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "copy": [0, 1, 0, 1]}))
    1.0

    """
    return measure_sets("residual_entropy", table, weights, missing, columns=columns)


class EntropyMeasure(NamedTuple):
    """The way in which a measure of sets of columns follows from S.

    sets: returns the sets whose S is needed, from the sets of columns asked about. terms: returns the terms that sum to
    n times the measure, from N and the S of each of these sets. independent: returns pairs of sets; the measure is 0 if
    each pair is independent.
    """

    sets: Callable[..., Sequence[Sequence[int]]]
    terms: Callable[..., Sequence[float]]
    independent: Callable[..., Sequence[tuple[Sequence[int], Sequence[int]]]] | None = None


def _union(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """Return the columns of both sets, ascending."""
    return sorted({*a, *b})


def _with_all_but_one(x: Sequence[int]) -> list[Sequence[int]]:
    """Return a set, and all its subsets that lack one column."""
    return [x, *([other for other in x if other != column] for column in x)]


def _each_with_earlier(x: Sequence[int]) -> list[tuple[Sequence[int], Sequence[int]]]:
    """Return each column with the columns before it: if all such pairs are independent, all columns are."""
    return [(x[:place], [column]) for place, column in enumerate(x) if place]


MEASURES = {
    "entropy": EntropyMeasure(
        sets=lambda x: [x],
        terms=lambda whole, joint: [whole, -joint],
    ),
    "conditional_entropy": EntropyMeasure(
        sets=lambda x, y: [_union(x, y), y],
        terms=lambda whole, joint, given: [given, -joint],
    ),
    "mutual_information": EntropyMeasure(
        sets=lambda a, b: [_union(a, b), a, b],
        terms=lambda whole, joint, first, second: [whole, joint, -first, -second],
        independent=lambda a, b: [(a, b)],
    ),
    "total_correlation": EntropyMeasure(
        sets=lambda x: [x, *([column] for column in x)],
        terms=lambda whole, joint, *alone: [*(whole - each for each in alone), joint, -whole],
        independent=_each_with_earlier,
    ),
    "dual_total_correlation": EntropyMeasure(
        sets=_with_all_but_one,
        terms=lambda whole, joint, *rests: [whole, -joint, *(joint - rest for rest in rests)],
        independent=_each_with_earlier,
    ),
    "residual_entropy": EntropyMeasure(
        sets=_with_all_but_one,
        terms=lambda whole, joint, *rests: [max(0.0, rest - joint) for rest in rests],
    ),
}


def measure_sets(name: str, table: Any, weights: Hashable, missing: str, **given: Any) -> float:
    """Return a measure of sets of columns of a table, in bits.

    name: of the measure, in `MEASURES`.
    given: the columns of each set (None: all), by the name of its argument.

    Other arguments and errors are as in `gpupif.information.entropy`.
    """
    wanted = [
        None if columns is None else as_columns(argument, columns, table, empty=argument == "given")
        for argument, columns in given.items()
    ]
    every = None if None in wanted else list(dict.fromkeys(name for columns in wanted for name in columns or ()))
    request = CountRequest(every, weights, missing, ", ".join(given))
    measure = MEASURES[name]
    with Reporter() as report, announce_compilation(), open_counts(table, request, report) as counts:
        names = list(counts.names)
        asked = [[names.index(name) for name in (names if columns is None else columns)] for columns in wanted]
        sets = measure.sets(*asked)
        counted = counts.count([SetRequest(columns) for columns in sets if columns], _make_sizes)
        units = counted.total.units
        sums = iter(counted.found)
        whole = Sizes.from_counts(np.array([units])).sum_log()
        # All rows agree on an empty set, so its S is N.
        terms = measure.terms(whole, *(LogSum.total(next(sums)).sum_log() if columns else whole for columns in sets))
        bits = max(0.0, math.fsum(terms) / units)
        if measure.independent is None or bits >= NEARLY_NONE:
            return bits
        pairs = measure.independent(*asked)
        return 0.0 if all(_are_independent(counts, counted.total, *pair) for pair in pairs) else bits


def _are_independent(counts: SetCounts, total: Total, a: Sequence[int], b: Sequence[int]) -> bool:
    """Return whether n c(a, b) = c(a) c(b) for all values of A and B: in whole numbers, without rounding."""
    counted = counts.count([SetRequest(a), SetRequest(b)], _make_numbers)
    first, second = map(sum, counted.found)
    # If A and B are independent, every value of A occurs with every value of B, in at least first * second rows.
    if first * second > total.rows:
        return False
    many, few = (a, b) if first > second else (b, a)
    parts = counts.count([SetRequest(few)], _make_combinations).found[0]
    codes = [np.concatenate([part.codes[place] for part in parts]) for place in range(len(few))]
    sums = np.concatenate([part.counts for part in parts])[np.lexsort(codes[::-1])]
    joint = SetRequest([*many, *few], many)
    return all(counts.count([joint], partial(_FindIndependence, len(many), sums)).found[0])


def _make_sizes(columns: Sequence[Column], total: Total) -> Any:
    """Return a function that finds the terms of S."""
    return lambda set_, counter, place: counter.sizes(place).log_sum()


def _make_numbers(columns: Sequence[Column], total: Total) -> Any:
    """Return a function that finds the number of combinations."""
    return lambda set_, counter, place: len(counter.counts(place))


def _make_combinations(columns: Sequence[Column], total: Total) -> Any:
    """Return a function that finds the combinations."""
    return lambda set_, counter, place: counter.combinations(place)


class _FindIndependence:
    """The function that returns whether n c(a, b) = c(a) c(b), in a partition with all rows of its values of A.

    many: number of columns of A, the first columns of the set. sums: c(b) of all values of B, in their order.
    """

    def __init__(self, many: int, sums: npt.NDArray[np.int64], columns: Sequence[Column], total: Total) -> None:
        self._many = many
        self._sums = sums
        self._cardinalities = [column.cardinality for column in columns]
        self._total = total

    def __call__(self, set_: Sequence[int], counter: Counter, place: int) -> bool:
        joint = counter.combinations(place)
        with Workers(1) as workers:
            one, other = (
                number_rows(
                    joint.codes[part], [self._cardinalities[column] for column in set_[part]], workers, joint.counts
                )
                for part in (slice(self._many), slice(self._many, None))
            )
            counts = one.combinations.counts
            # All combinations of A here and B have to occur. Then the values of B here are all values of B, in order.
            if len(other.combinations.counts) < len(self._sums) or len(joint.counts) < len(counts) * len(self._sums):
                return False
        parts = counts[one.number], self._sums[other.number]
        return as_often_as_parts(joint.counts, parts, self._total.units)
