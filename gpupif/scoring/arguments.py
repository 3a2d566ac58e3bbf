"""Types of the arguments of `score`, by what goes with what."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypedDict

Measures = str | Iterable[str]
Known = Sequence[Hashable] | None
Attackers = Mapping[str, Sequence[Hashable]]
Place = str | os.PathLike[str]


class About(TypedDict, total=False):
    """Arguments of `score` that go with all others."""

    columns: Sequence[Hashable] | None
    priors: Any
    accuracies: Any
    distances: Mapping[Any, Any] | None
    missing: str
    device: str
    gpu_grouping: str
    dtype: str
    progress: bool | None


class People(About, total=False):
    """Those that go with attackers whose knowledge is named."""

    weights: Hashable
    population: Any
    population_lacks: str


class AnyOf(About, total=False):
    """Those that go with a number of known columns."""

    among: Sequence[Hashable] | None
    subsets: int | None
    seed: int


class Stored(TypedDict, total=False):
    """Those that go with an output."""

    memory_limit: int | str | None
    temp: str | os.PathLike[str] | None
    rows_per_file: int | None
    resume: bool
    overwrite: bool
    keep_input: bool


class PeopleStored(People, Stored, total=False):
    """With an output."""


class AnyOfStored(AnyOf, Stored, total=False):
    """With an output."""
