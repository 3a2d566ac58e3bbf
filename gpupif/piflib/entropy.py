"""piflib's `entropy`: entropies of sets of columns, in bits. A missing value is a value of its own.

Functions raise ColumnNotFoundError for columns that are not there and InputError for a table without rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Any

import pandas as pd

from ..encoding.encode import encode_table
from ..engines.cpu.counting import SubsetCounter
from ..errors import ColumnNotFoundError, InputError
from ..rows.threads import Workers
from ..utils.information import entropy_of_counts
from ..utils.validation import Columns, list_names


def get_marginal(df: pd.DataFrame, columns: Columns) -> dict[Any, float]:
    """Return the joint distribution of the columns: a value, or a tuple of several columns' values, to its share."""
    names = _existing(df, columns)
    shares = df[names].value_counts(normalize=True, dropna=False, sort=False)
    if len(names) == 1:
        shares.index = shares.index.get_level_values(0)
    return {outcome: float(share) for outcome, share in shares.items()}


def entropy(df: pd.DataFrame, rvs: Columns) -> float:
    """Return the joint entropy H of the columns `rvs`; 0 without columns."""
    names = _existing(df, rvs)
    if not names:
        return 0.0
    with Workers() as workers:
        table = encode_table(names, [df[name] for name in names], len(df), "category", workers)
        counter = SubsetCounter([range(len(names))], [column.cardinality for column in table.columns], len(df), workers)
        counter.add([column.codes for column in table.columns])
        return entropy_of_counts(counter.counts(0))


def mutual_information(df: pd.DataFrame, rvs_X: Columns, rvs_Y: Columns) -> float:
    """Return the mutual information I(X; Y) = H(X) + H(Y) - H(X, Y) of two sets of columns."""
    return entropy(df, rvs_X) + entropy(df, rvs_Y) - entropy(df, _both(rvs_X, rvs_Y))


def pairwise_mutual_information(df: pd.DataFrame) -> tuple[list[Hashable], list[Hashable], list[float]]:
    """Return the mutual information of all pairs of columns: first names, second names, values."""
    pairs = list(itertools.combinations(df.columns, 2))
    values = [mutual_information(df, [a], [b]) for a, b in pairs]
    return [a for a, _ in pairs], [b for _, b in pairs], values


def create_entropy_mi_table(df: pd.DataFrame, round_digits: int = 2) -> pd.DataFrame:
    """Return entropies and mutual information of all pairs of columns, rounded: columns X, Y, H(X), H(Y), I(X;Y)."""
    first, second, shared = pairwise_mutual_information(df)
    entropies: dict[Hashable, float] = {name: entropy(df, [name]) for name in df.columns}
    return pd.DataFrame(
        {
            "X": first,
            "Y": second,
            "H(X)": [entropies[name] for name in first],
            "H(Y)": [entropies[name] for name in second],
            "I(X;Y)": shared,
        }
    ).round(round_digits)


def conditional_entropy(df: pd.DataFrame, rvs_X: Columns, rvs_Y: Columns) -> float:
    """Return the conditional entropy H(X | Y) = H(X, Y) - H(Y)."""
    return max(0.0, entropy(df, _both(rvs_X, rvs_Y)) - entropy(df, rvs_Y))


def create_conditional_entropy_table(df: pd.DataFrame, round_digits: int = 2) -> pd.DataFrame:
    """Return the entropy of each column given all others, rounded: columns X, Y, H(X), H(Y), H(X|Y)."""
    rows: list[dict[str, Any]] = []
    joint = entropy(df, list(df.columns))
    for name in df.columns:
        others = [other for other in df.columns if other != name]
        rest = entropy(df, others)
        rows.append(
            {"X": name, "Y": others, "H(X)": entropy(df, [name]), "H(Y)": rest, "H(X|Y)": max(0.0, joint - rest)}
        )
    return pd.DataFrame(rows, columns=["X", "Y", "H(X)", "H(Y)", "H(X|Y)"]).round(round_digits)


def dual_total_correlation(df: pd.DataFrame, rvs: Columns) -> float:
    """Return the dual total correlation, joint entropy less residual entropy: the information that columns share."""
    return entropy(df, rvs) - residual_entropy(df, rvs)


def residual_entropy(df: pd.DataFrame, rvs: Columns) -> float:
    """Return the residual entropy: the sum over the columns of the entropy of each column given all others."""
    names = dict.fromkeys(list_names("columns", rvs))
    return sum(conditional_entropy(df, [name], [other for other in names if other != name]) for name in names)


def _both(rvs_X: Columns, rvs_Y: Columns) -> list[Hashable]:
    return [*list_names("columns", rvs_X), *list_names("columns", rvs_Y)]


def _existing(df: pd.DataFrame, columns: Columns) -> list[Hashable]:
    names = list(dict.fromkeys(list_names("columns", columns)))
    unknown = [name for name in names if name not in df.columns]
    if unknown:
        raise ColumnNotFoundError("columns", unknown, df.columns)
    if len(df) == 0:
        raise InputError("df: expected a table with at least one row, got none.")
    return names
