"""piflib's `data_util`: distributions as dictionaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from ..errors import InputError


def calculate_distribution(
    values: Iterable[Any], accuracy: float = 1, feature_distribution: Mapping[Any, float] | None = None
) -> dict[Any, float]:
    """Return the distribution of values: value to share. Missing values are one value, None.

    accuracy < 1 mixes it with `feature_distribution`: accuracy times the share plus (1 - accuracy) times the prior, for
    the values of the prior whose mixture is above 0. Raises InputError for an accuracy outside [0, 1], or one below 1
    without a prior over all the values.
    """
    counts = Counter(plain_values(values))
    shares = {value: count / counts.total() for value, count in counts.items()}
    if not 0 <= accuracy <= 1:
        raise InputError(f"accuracy: expected a number from 0 to 1, got {accuracy!r}.")
    if accuracy == 1:
        return shares
    if feature_distribution is None or not shares.keys() <= feature_distribution.keys():
        raise InputError("feature_distribution: expected a prior with every value that occurs, as accuracy is below 1.")
    mixed = {
        value: accuracy * shares.get(value, 0.0) + (1 - accuracy) * prior
        for value, prior in feature_distribution.items()
    }
    return {value: share for value, share in mixed.items() if share > 0}


def complete_feature_priors(
    df: pd.DataFrame, feature_priors: Mapping[int, Mapping[Any, float]]
) -> dict[int, Mapping[Any, float]]:
    """Return the given priors by column position, and the table's own distribution for the other columns."""
    return {
        position: feature_priors.get(position) or calculate_distribution(df.iloc[:, position])
        for position in range(df.shape[1])
    }


def plain_values(values: Iterable[Any]) -> list[Any]:
    """Return values as Python values, None for missing values."""
    series = pd.Series(values)
    missing = series.isna()
    return [None if absent else value for value, absent in zip(series.tolist(), missing, strict=True)]
