"""PRAM, the post-randomisation method: values are replaced by a matrix of probabilities."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...encoding.plain_values import text_of
from ...errors import InputError, reason_of
from ...utils.given_files import read_file
from ...utils.validation import brief, within
from ..field_checks import probability
from ..steps import Step
from ..treatment import Tools, TreatedTable, Treatment
from .transitions import CATEGORY, Domain, Matrix, TransitionStep, domain_of

# The largest error of a row's sum that is corrected rather than refused.
TOLERANCE = 1e-6
# The most values of a matrix: it takes 32 MB then, and half a minute to be inverted.
MOST_VALUES = 2000
Rows = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Pram(Treatment):
    """Replace values by a matrix: P(y given x) for each true x and recorded y (Gouweleeuw and others, 1998).

    column: name of the column.
    matrix: a dictionary by true value of dictionaries by recorded value, with probabilities; an absent recorded value
        has probability 0. Or the path of a CSV file: its first line has an empty cell and the recorded values, each
        other line a true value and probabilities. Each row adds up to 1. Every value of the table needs a row. The text
        "" is a missing value. Give either `matrix` or `invariant`.
    invariant: a probability t from 0 to 1. The matrix is made from t and the shares of the values in the table, which
        it keeps in expectation; see `invariant_matrix`. The record says how likely each value is kept.
    missing: the rule for missing values, required if there are any: "category" treats them as a further value, "keep"
        leaves them missing, and so shows them. Default None.

    Probabilities are whole numbers out of 2^64. `estimates` of the result of `gpupif.treat` inverts the matrix.

    Raises InputError for a wrong matrix, for more than 2,000 values, for a value of the table without a row, and for
    missing values without a rule.
    """

    do: ClassVar[str] = "pram"
    value_lists: ClassVar[Sequence[str]] = ("matrix",)
    is_random: ClassVar[bool] = True
    files: ClassVar[Sequence[str]] = ("matrix",)

    column: Hashable
    matrix: Mapping[Any, Mapping[Any, float]] | str | os.PathLike[str] | None = None
    invariant: Annotated[float | None, probability] = None
    missing: Literal["category", "keep"] | None = None

    def check(self) -> None:
        super().check()
        if (self.matrix is None) == (self.invariant is None):
            came = "neither" if self.matrix is None else "both"
            raise InputError(f"{self.said}: expected either matrix= or invariant= (a share to keep), got {came}.")
        if self.matrix is not None:
            self._rows()

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        observed = table.values(self.column)
        draws = tools.draws(self.do, self.column)
        rows = None if self.matrix is None else self._rows()
        given = None if rows is None else [*dict.fromkeys([*rows, *(value for row in rows.values() for value in row)])]
        if given is not None and self.missing == CATEGORY:
            given = [value for value in given if value]
        domain = domain_of(self.column, observed, given, self.missing)
        if rows is not None and self.missing == CATEGORY and observed.missing and "" not in rows:
            raise InputError(
                f"{self.said}: matrix: {observed.missing:,} missing values of the table have "
                "no row. Add one for the text ''."
            )
        if domain.randomised > MOST_VALUES:
            raise InputError(
                f"{self.said}: {domain.randomised:,} values, and a matrix may have up to "
                f"{MOST_VALUES:,}. Recode the column, or take randomized_response, which needs none."
            )
        if rows is None:
            counts = np.append(observed.counts, observed.missing)[: domain.randomised]
            matrix = invariant_matrix(counts, float(self.invariant or 0.0))
        else:
            matrix = self._matrix(rows, domain, given or [])
        kept = np.diagonal(matrix).tolist()
        facts = {"values": domain.randomised, "kept_of_each": kept, "least_kept": min(kept, default=1.0)}
        # An invariant matrix follows from the shares of values in the table, which a public record must not show.
        hidden = () if rows is not None else ("kept_of_each", "least_kept")
        transitions = Matrix(matrix, domain.states)
        return TransitionStep(draws, domain, transitions, writes=[self.column], record=facts, revealing=hidden)

    def _matrix(self, rows: Rows, domain: Domain, given: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the matrix (states, states). A state that is only recorded, and never true, stays."""
        place = {value: number for number, value in enumerate([*given, ""][: domain.randomised])}
        matrix = np.eye(domain.randomised)
        for value, row in rows.items():
            if value in place:
                here = matrix[place[value]]
                here[:] = 0.0
                for other, share in row.items():
                    here[place[other]] = share
                here /= math.fsum(here)
        return matrix

    def _rows(self) -> Rows:
        """Return the matrix as dictionaries by the texts of values; raises InputError for a wrong matrix."""
        said = f"{self.said}: matrix"
        rows = self.matrix if isinstance(self.matrix, Mapping) else read_matrix(said, self.matrix or "")
        if not rows:
            raise InputError(f"{said}: expected probabilities by recorded value, by true value; got {brief(rows)}.")
        by_text = {_text(value): {_text(other): share for other, share in row.items()} for value, row in rows.items()}
        for value, row in by_text.items():
            wrong = next((share for share in row.values() if not within(share, 0, 1)), None)
            if wrong is not None:
                raise InputError(f"{said}: row {value!r}: expected probabilities from 0 to 1, got {brief(wrong)}.")
            total = math.fsum(row.values())
            if abs(total - 1) > TOLERANCE:
                raise InputError(f"{said}: row {value!r}: expected probabilities that add up to 1, got {total:.9g}.")
        only_recorded = [
            value for row in by_text.values() for value, share in row.items() if share and value not in by_text
        ]
        if only_recorded:
            raise InputError(
                f"{said}: {only_recorded[0]!r} may be recorded, but has no row of its own. Add a row, if only with "
                "probability 1 for itself."
            )
        return by_text


def _text(value: Any) -> str:
    """Return the text of a value in a matrix, "" for a missing value."""
    if value is None:
        return ""
    try:
        return value if isinstance(value, str) else text_of(value)
    except pa.ArrowException:
        return brief(value)


def read_matrix(said: str, path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """Return the matrix in a CSV file, see `Pram`; raises InputError. said: prefix of the error."""
    try:
        text = read_file(path).decode("utf-8-sig")
        lines = [line for line in csv.reader(io.StringIO(text, newline="")) if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{said}: {os.fspath(path)!r} cannot be read: {reason_of(error)}.") from None
    names = lines[0][1:] if lines else []
    rows: dict[str, dict[str, float]] = {}
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(names) + 1 or line[0] in rows:
            expected = "one row for each value" if line[0] in rows else f"{len(names) + 1} cells"
            raise InputError(f"{said}: {os.fspath(path)!r}, line {number}: expected {expected}, got {brief(line)}.")
        try:
            rows[line[0]] = {name: float(cell or 0) for name, cell in zip(names, line[1:], strict=True)}
        except ValueError:
            raise InputError(
                f"{said}: {os.fspath(path)!r}, line {number}: expected numbers, got {brief(line)}."
            ) from None
    return rows


def invariant_matrix(counts: npt.NDArray[np.int64], keep: float) -> npt.NDArray[np.float64]:
    """Return P(y given x) that keeps the shares of values in expectation: float64 (values, values).

    The first stage is a randomised response that keeps a value with probability `keep`. The second stage draws a true
    value by its probability given the response. counts: rows with each value. A value without rows stays.
    """
    there = np.flatnonzero(counts)
    matrix = np.eye(len(counts))
    size, total = len(there), int(counts.sum())
    if size:
        shares = counts[there] / total
        # P(true y given response z), by Bayes from the first stage P(z given x) = keep [x = z] + (1 - keep)/size.
        second = (keep * np.eye(size) + (1 - keep) / size) * shares
        second /= row_sums(second)
        both = keep * second + (1 - keep) / size * row_sums(second.T).T
        matrix[np.ix_(there, there)] = both / row_sums(both)
    return matrix


def row_sums(matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the sums of rows as a column (rows, 1). Each is rounded once, and therefore equal on every processor."""
    return np.array([[math.fsum(row)] for row in matrix.tolist()])
