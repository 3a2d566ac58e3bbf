"""From arguments to a job: columns, priors and accuracies checked, whatever kind of table they are of."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .axes import Axis, make_axis
from .columns import Column
from .engines.base import Job
from .errors import InputError, NearlyUniqueWarning, NothingKnownWarning, PriorError, warn
from .measures import Measure
from .names import as_list, as_mapping, check_exist, check_unique
from .priors import Prior, make_prior
from .reading import Pick

# From so many rows on, a column with so large a share of different values is named in a warning.
UNIQUE_ROWS = 50
UNIQUE_SHARE = 0.9

MISSING = ("category", "error", "wildcard")


@dataclass(frozen=True)
class Question:
    """What is asked of a table, checked against the names of its columns.

    targets: columns to score; known: those the attacker knows; used: both, in the order of the table. priors,
    accuracies and distances: by column.
    """

    targets: list[Hashable]
    known: list[Hashable]
    used: list[Hashable]
    priors: Mapping[Any, Mapping[Any, float]]
    accuracies: Mapping[Any, float]
    distances: Mapping[Any, Any]
    missing: str
    measures: tuple[Measure, ...]
    dtype: str

    def job(
        self,
        columns: Sequence[Column],
        rows: int,
        scores_on: str = "host",
        tell: Callable[[str, type[Warning]], None] = warn,
    ) -> tuple[Job, dict[Hashable, Prior]]:
        """What an engine is to do with the columns `used` of a table of so many rows, and the prior of each.

        Raises PriorError; warns, by `tell`, of columns that are nearly unique.
        """
        warn_of_unique(columns, rows, tell)
        wildcards = [place for place, column in enumerate(columns) if column.missing and self.missing == "wildcard"]
        valued = [column.without_missing() if place in wildcards else column for place, column in enumerate(columns)]
        prior_of = {column.name: self._prior(column, rows) for column in valued}
        job = Job(
            codes=[column.codes for column in columns],
            counts=[column.counts for column in columns],
            priors=[prior_of[name].probabilities for name in self.used],
            log2_priors=[prior_of[name].log2_probabilities for name in self.used],
            accuracies=[_accuracy(name, self.accuracies.get(name, 1.0)) for name in self.used],
            targets=[self.used.index(name) for name in self.targets],
            known=[self.used.index(name) for name in self.known],
            measures=self.measures,
            dtype=self.dtype,
            axes=self._axes(valued, prior_of),
            scores_on=scores_on,
            wildcards=wildcards,
        )
        return job, prior_of

    def _prior(self, column: Column, rows: int) -> Prior:
        """The prior of a column, over its values that are known where missing ones are wildcards."""
        given = self.priors.get(column.name)
        if self.missing != "wildcard":
            return make_prior(column, given, rows)
        if isinstance(given, Mapping) and any(value is None or value != value for value in given):
            raise PriorError(
                f"priors: column {column.name!r}: expected no probability for missing values, which match any value "
                "with missing='wildcard'. Leave None out, and make the sum of the others 1."
            )
        return make_prior(column, given, int(column.counts.sum()))

    def _axes(self, columns: Sequence[Column], prior_of: Mapping[Hashable, Prior]) -> list[Axis | None] | None:
        """Where the values of the targets lie, if a measure asks for it."""
        if not any(measure.walks for measure in self.measures):
            return None
        return [
            make_axis(column, prior_of[column.name], self.distances.get(column.name))
            if column.name in self.targets and column.cardinality
            else None
            for column in columns
        ]


def ask(
    names: Sequence[Hashable],
    index_names: Sequence[Hashable],
    measures: tuple[Measure, ...],
    columns: Sequence[Hashable] | None,
    known: Sequence[Hashable] | None,
    priors: Mapping[Any, Mapping[Any, float]] | None,
    accuracies: Mapping[Any, float] | None,
    missing: str,
    dtype: str,
    distances: Mapping[Any, Any] | None = None,
) -> Question:
    """Check the arguments of `score` against a table with columns `names`, of which `index_names` only label rows."""
    targets, attacker = _resolve_columns(names, index_names, columns, known)
    used = [name for name in names if name in {*targets, *attacker}]
    return Question(
        targets,
        attacker,
        used,
        as_mapping("priors", priors, names, used),
        as_mapping("accuracies", accuracies, names, used),
        as_mapping("distances", distances, names, used),
        missing,
        measures,
        dtype,
    )


def check_word(argument: str, word: Any, words: Sequence[str]) -> None:
    """Raise InputError where an argument is none of the words it may be."""
    if not isinstance(word, str) or word not in words:
        raise InputError(f"{argument}: expected {' or '.join(map(repr, words))}, got {word!r}.")


def needed_columns(
    columns: Sequence[Hashable] | None, known: Sequence[Hashable] | None, priors: Any = None, accuracies: Any = None
) -> Pick:
    """Of a file's columns those that scoring `columns` against `known` needs; raises InputError for unknown ones."""

    def pick(names: Sequence[str]) -> list[str] | None:
        if columns is None:
            return None
        targets, attacker = as_list("columns", columns), [] if known is None else as_list("known", known)
        as_mapping("priors", priors, names, [*targets, *attacker])
        as_mapping("accuracies", accuracies, names, [*targets, *attacker])
        check_exist("columns", targets, names)
        check_exist("known", attacker, names)
        return [name for name in names if name in {*targets, *attacker}]

    return pick


def _resolve_columns(
    names: Sequence[Hashable],
    index_names: Sequence[Hashable],
    columns: Sequence[Hashable] | None,
    known: Sequence[Hashable] | None,
) -> tuple[list[Hashable], list[Hashable]]:
    """Targets and the columns the attacker knows, in the order asked for, checked against the table."""
    if not names:
        raise InputError("table: expected at least one column, got none.")
    check_unique(names)
    labels = index_names if len(index_names) < len(names) else ()
    default = [name for name in names if name not in labels]
    targets = default if columns is None else as_list("columns", columns)
    if not targets:
        raise InputError("columns: expected at least one column to score, got an empty list.")
    attacker = list(targets) if known is None else as_list("known", known)
    check_exist("columns", targets, names)
    check_exist("known", attacker, names)
    if known is None and len(targets) == 1 and (columns is not None or set(str(targets[0])) & set(",;\t| ")):
        mend = "Is the separator right?" if columns is None else "Name the columns the attacker knows with known=."
        warn(
            f"columns: only {targets[0]!r} is scored, so by default the attacker knows nothing and every cohort is the "
            f"whole table. {mend}",
            NothingKnownWarning,
        )
    elif known is not None and len(attacker) == 1 and attacker[0] in targets:
        warn(
            f"known: the attacker knows only {attacker[0]!r}, so nothing when that column is scored itself: every "
            "cohort is the whole table. Name further columns with known=.",
            NothingKnownWarning,
        )
    return targets, attacker


def _accuracy(name: Hashable, value: Any) -> float:
    if not isinstance(value, int | float | np.number) or not 0.0 <= value <= 1.0:
        raise InputError(f"accuracies: column {name!r}: expected a number from 0 to 1, got {value!r}.")
    return float(value)


def warn_of_unique(columns: Iterable[Column], rows: int, tell: Callable[[str, type[Warning]], None] = warn) -> None:
    """Warn of columns in which nearly every row has a value of its own."""
    if rows < UNIQUE_ROWS:
        return
    for column in columns:
        name = column.name
        if column.cardinality >= UNIQUE_SHARE * rows:
            tell(
                f"column {name!r}: {column.cardinality:,} different values in {rows:,} rows. While the attacker "
                "knows it, nearly every cohort is a single row, so every other column looks fully revealed. Exclude it "
                "with columns= (an identifier), or bin it (a measurement)."
                + (" One without a name is often the index of a pandas table: write it with index=False." * (not name)),
                NearlyUniqueWarning,
            )
