"""piflib's `pif_calculator`: personal information factors of a pandas DataFrame, on gpupif's engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import ColumnNotFoundError, InputError
from ..scoring.score import score
from ..utils.config import config
from .data_util import calculate_distribution, plain_values

if TYPE_CHECKING:
    import numpy.typing as npt

Distribution = Mapping[Any, float]


def compute_cigs(
    dataframe: pd.DataFrame,
    feature_priors: Mapping[Any, Distribution] | None = None,
    feature_accuracies: Mapping[Any, float] | None = None,
    samples: int | None = None,
) -> pd.DataFrame:
    """Compute the cell information gain (CIG) of every cell, in bits.

    The result is a DataFrame of the shape, index and columns of `dataframe`.
    feature_priors: column position (or name) to {value: probability}, default the table's own distribution.
    feature_accuracies: column position (or name) to accuracy in [0, 1], default 1. samples: None or the number of
    columns. Missing values are one value. Raises InputError (see `gpupif.score`). Source: piflib manual, section 1.4.
    """
    if samples is not None and samples != dataframe.shape[1]:
        raise InputError(
            f"samples: expected None or the number of columns, {dataframe.shape[1]}; got {samples!r}. Every column is "
            "scored: leave samples out."
        )
    return _score(dataframe, "cig", feature_priors, feature_accuracies)


def compute_weighted_cigs(
    dataframe: pd.DataFrame,
    feature_priors: Mapping[Any, Distribution] | None = None,
    feature_accuracies: Mapping[Any, float] | None = None,
) -> pd.DataFrame:
    """Compute the weighted CIG of every cell, in bits: CIG times H(X|rest) / H(X), not rounded.

    Arguments as in `compute_cigs`. Source: piflib manual, section 1.5.
    """
    return _score(dataframe, "wcig", feature_priors, feature_accuracies)


def compute_csfs(
    df: pd.DataFrame,
    feature_priors: Mapping[Any, Distribution] | None = None,
    feature_accuracies: Mapping[Any, float] | None = None,
) -> pd.DataFrame:
    """Compute the cell surprise factor of every cell, in [0, 1]. Arguments as in `compute_cigs`.

    Source: piflib manual, section 1.6.
    """
    return _score(df, "csf", feature_priors, feature_accuracies)


def compute_pif(cigs: pd.DataFrame, percentile: float) -> float:
    """Compute PIF_percentile: the percentile (0 to 100, linear) of the row sums of the CIG values, in bits.

    Source: piflib manual, section 1.7.3.
    """
    return float(np.percentile(cigs.sum(axis=1), percentile))


def compute_posterior_distributions(
    feature: Hashable, df: pd.DataFrame
) -> tuple[dict[str, list[float]], npt.NDArray[Any]]:
    """Compute the posterior distributions of one column, given all other columns, for plots.

    Returns ({text of the other columns' values: probability of each value of the column}, the column's values in
    order of appearance). One entry per cohort. Raises ColumnNotFoundError for a column that is not there.
    """
    if feature not in df.columns:
        raise ColumnNotFoundError("feature", [feature], df.columns)
    known = [plain_values(df[name]) for name in df.columns if name != feature]
    cohorts: dict[tuple[Any, ...], Counter[Any]] = {}
    values = plain_values(df[feature])
    for key, value in zip(zip(*known, strict=True) if known else [()] * len(df), values, strict=True):
        cohorts.setdefault(key, Counter())[value] += 1
    order = list(dict.fromkeys(values))
    distributions = {
        str(key): [count.get(value, 0) / count.total() for value in order] for key, count in cohorts.items()
    }
    return distributions, df[feature].unique()


def _score(
    frame: pd.DataFrame,
    measure: str,
    priors: Mapping[Any, Distribution] | None,
    accuracies: Mapping[Any, float] | None,
) -> pd.DataFrame:
    """Compute one measure with columns known by position, as in piflib: names of columns can repeat."""
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"dataframe: expected a pandas DataFrame, got {type(frame).__name__}.")
    with config(device="cpu", progress=False):
        scores = score(
            frame.set_axis(range(frame.shape[1]), axis=1),
            [measure],
            priors=_by_position("feature_priors", frame, priors),
            accuracies=_by_position("feature_accuracies", frame, accuracies),
        )
    result: pd.DataFrame = scores[measure]
    return result.set_axis(frame.columns, axis=1)


def _by_position(argument: str, frame: pd.DataFrame, given: Mapping[Hashable, Any] | None) -> dict[Hashable, Any]:
    names = list(frame.columns)
    positions: dict[Hashable, Any] = {}
    for key, value in (given or {}).items():
        if isinstance(key, int | np.integer) and 0 <= key < len(names):
            positions[int(key)] = value
        elif key in names:
            positions[names.index(key)] = value
        else:
            raise ColumnNotFoundError(f"{argument} (by position from 0, or name)", [key], names)
    return positions


__all__ = [
    "calculate_distribution",
    "compute_cigs",
    "compute_csfs",
    "compute_pif",
    "compute_posterior_distributions",
    "compute_weighted_cigs",
]
