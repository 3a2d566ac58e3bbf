"""Priors: the table's own distribution of each column, or one that the user gives."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpupif.kernels.log_units import LOG_BITS

from ..encoding.column import Column
from ..errors import InputError, PriorError, listed, marked
from ..io.documents import parse_json
from ..utils.display import as_text
from ..utils.information import entropy_of_counts, entropy_of_probabilities, log2_of_probabilities, log2_of_shares
from ..utils.validation import table_value, within

SUM_TOLERANCE = 1e-6
# Smaller ones have fewer digits, and their reciprocals none.
LEAST = sys.float_info.min


@dataclass(frozen=True)
class Prior:
    """The distribution that an attacker assumes for a column before he knows anything of a person.

    probabilities: by code, over the values that occur.
    log2_probabilities: by code, the logarithms of probabilities, in units of 2^-unit_bits bits.
    entropy: in bits, over all values of the prior.
    given: the user's probabilities by value; None: the prior is the table's distribution.
    """

    column: Column
    probabilities: npt.NDArray[np.float64]
    log2_probabilities: npt.NDArray[np.int64]
    unit_bits: int
    entropy: float
    given: Mapping[Any, float] | None

    def as_dict(self) -> dict[Any, float]:
        """Value to probability; None for missing."""
        if self.given is not None:
            return dict(self.given)
        return dict(zip(self.column.values(), self.probabilities.tolist(), strict=True))


class TextPrior(dict[str, float]):
    """A prior whose keys are the texts of values, as in JSON: "39" denotes 39 and "" a missing value."""


class AsDict(Protocol):
    """A prior that can be looked up."""

    def as_dict(self) -> dict[Any, float]:
        """Value to probability; None for missing."""


class Priors(Mapping[Hashable, dict[Any, float]]):
    """Column name to its prior, value to probability; made when looked up, for a column may have many values."""

    def __init__(self, priors: Mapping[Hashable, AsDict]) -> None:
        self._priors = priors

    def __getitem__(self, column: Hashable) -> dict[Any, float]:
        return self._priors[column].as_dict()

    def __iter__(self) -> Any:
        return iter(self._priors)

    def __len__(self) -> int:
        return len(self._priors)

    def to_frame(self) -> pd.DataFrame:
        """All of them as one table as ``priors=`` takes it: columns column, value (as text) and probability.

        Stored in a file, ``to_frame().to_parquet("priors.parquet")``, they serve for another table, or a later one.
        """
        rows = [(name, value, share) for name in self for value, share in self[name].items()]
        texts = [None if value is None else texts_of(value)[0] for _, value, _ in rows]
        shares = np.array([share for _, _, share in rows], np.float64)
        return pd.DataFrame({"column": [name for name, _, _ in rows], "value": texts, "probability": shares})

    def __repr__(self) -> str:
        return f"Priors of {', '.join(map(as_text, self._priors))}"


def make_prior(
    column: Column, given: Mapping[Any, float] | None, rows: int, counts: npt.NDArray[np.int64] | None = None
) -> Prior:
    """Return the prior of a column: the table's distribution, or `given`, checked against the table.

    A sum that differs from 1 by rounding is made 1. Raise PriorError if `given` lacks a value that occurs, gives it
    0, is negative or not finite, or does not sum to 1 within 1e-6.

    rows: the sum of the counts. It may be 0. counts: by code, instead of the column's own counts.
    """
    if given is None:
        counts = column.counts if counts is None else counts
        # Weights of 0 and wildcards may leave a column without any counted value: all its shares are 0.
        rows = max(1, rows)
        return Prior(column, counts / rows, log2_of_shares(counts, rows), LOG_BITS, entropy_of_counts(counts), None)
    values = [plain_value(value) for value in column.values()]
    shares = _normalized(column.name, _given_shares(column.name, given, values))
    _check_shares(column.name, values, shares)
    probabilities = np.array([shares[value] for value in values])
    entropy = entropy_of_probabilities(np.array(list(shares.values())))
    return Prior(column, probabilities, *log2_of_probabilities(probabilities), entropy, shares)


def _given_shares(name: Hashable, given: Any, values: Sequence[Any]) -> dict[Any, float]:
    """Return the user's probabilities of plain values, each checked. values: the values that occur."""
    if isinstance(given, pd.Series):
        if not given.index.is_unique:
            twice = given.index[given.index.duplicated()][0]
            raise PriorError(
                f"priors: column {name!r}: value {table_value(twice)} stands twice in the index of the Series."
            )
        given = given.to_dict()
    if not isinstance(given, Mapping):
        raise PriorError(
            f"priors: column {name!r}: expected a dictionary of value: probability, got {type(given).__name__}."
        )
    if not given:
        raise PriorError(f"priors: column {name!r}: expected a probability for every value that occurs, got none.")
    shares: dict[Any, float] = {}
    for value, share in given.items():
        if not within(share, 0, 1 + SUM_TOLERANCE):
            raise PriorError(
                f"priors: column {name!r}: expected a probability between 0 and 1 for {table_value(value)}, got "
                f"{table_value(share)}." + (" Divide percentages by 100." if within(share, 1, 100) else "")
            )
        shares[plain_value(value)] = shares.get(plain_value(value), 0.0) + float(share)
    if isinstance(given, TextPrior):
        of_text = values_by_text(values)
        return {of_text.get(text, text): share for text, share in shares.items()}
    return shares


def _normalized(name: Hashable, shares: dict[Any, float]) -> dict[Any, float]:
    """Probabilities whose sum is 1, from such as are off by rounding."""
    total = math.fsum(shares.values())
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise PriorError(
            f"priors: column {name!r}: expected probabilities that sum to 1, they sum to {marked(f'{total:.9g}')}. "
            "Divide each by the sum."
        )
    return {value: share / total for value, share in shares.items()} if total != 1.0 else shares


def _check_shares(name: Hashable, values: Sequence[Any], shares: Mapping[Any, float]) -> None:
    """Raise PriorError where a value that occurs has no probability, or one that is too small to compute with."""
    tiny = next((value for value in values if 0.0 < shares.get(value, 0.0) < LEAST), None)
    if tiny is not None:
        raise PriorError(
            f"priors: column {name!r}: expected a probability of at least {LEAST:.3g} for {table_value(tiny)}, got "
            f"{marked(f'{shares[tiny]:.3g}')}. Give it more."
        )
    lacking = [value for value in values if not shares.get(value, 0.0) > 0.0]
    if not lacking:
        return
    shown = listed(lacking, 5, lambda value: "missing value" if value is None else table_value(value))
    own = set(values)
    absent = [value for value in shares if value not in own]
    strange = (
        f" Of those given, {', '.join(map(table_value, absent[:5]))} occur nowhere in the column." if absent else ""
    )
    missing = ' (a missing value is None, in JSON "")' if None in lacking else ""
    raise PriorError(
        f"priors: column {name!r}: expected a probability above 0 for every value that occurs; got none or 0 for "
        f"{shown}. Add them, even with a small probability{missing}.{strange}"
    )


def plain_value(value: Any) -> Any:
    """Return the plain form of a value: NumPy scalars as Python's, all missing values as None."""
    if isinstance(value, np.generic):
        value = {"m": pd.Timedelta, "M": pd.Timestamp}.get(value.dtype.kind, np.generic.item)(value)
    if value is None or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return None
    return value


def values_by_text(values: Iterable[Any]) -> dict[str, Any]:
    """Return the values by their text in JSON. A text that is a value itself denotes this value."""
    several = list(values)
    of_text = {text: value for value in several for text in texts_of(value)}
    return of_text | {value: value for value in several if isinstance(value, str)}


def texts_of(value: Any) -> list[str]:
    """Return the texts by which a value may be a key in JSON."""
    if value is None:
        return ["", "null", "None", "NULL"]
    if isinstance(value, bool):
        return [str(value), str(value).lower()]
    if isinstance(value, float) and value.is_integer():
        return [str(value), str(int(value))]
    if hasattr(value, "isoformat"):
        return [str(value), value.isoformat(), value.isoformat().removesuffix("T00:00:00")]
    return [str(value)]


def priors_from_json(text: str) -> dict[str, Mapping[Any, float]]:
    """Return priors from a JSON document: {"column": {"value": probability}} or {"column": [[value, probability],
    ...]}.

    In the first form a value is known by its text (see `TextPrior`); in the second it has its JSON type, null for
    missing. Raises ValueError with what is wrong.
    """
    document = parse_json(text)
    if not isinstance(document, dict):
        raise ValueError('expected an object {"column": {"value": probability}}.')
    priors: dict[str, Mapping[Any, float]] = {}
    for column, prior in document.items():
        pairs: list[Any] = prior if isinstance(prior, list) else [None]
        if isinstance(prior, dict):
            priors[column] = TextPrior(prior)
        elif all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], Hashable) for pair in pairs):
            priors[column] = dict(pairs)
        else:
            raise InputError(
                f"column {column!r}: expected an object or a list of [value, probability] pairs, got "
                f"{table_value(prior)}."
            )
    return priors
