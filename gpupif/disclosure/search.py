"""What is looked for in every part of a table, and what follows from what was found in all of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..encoding.column import Column, value_order
from ..engines.part_jobs import dense, part_job
from ..errors import InputError
from ..measures import resolve_measures
from ..utils.arrays import on_host
from .cells import FIRST_OF_ALL, about_distance, ask_risk, check_columns, constant_column
from .findings import ByAttribute, Findings, Stopwatch
from .homogeneity import Homogeneous, find_homogeneous
from .models import MODELS
from .request import Asked

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..engines.base import Engine, EngineResult, Job, Progress
    from ..rows.threads import Workers
    from ..utils.information import Sizes
    from .journalist import ClassesThere


@dataclass(frozen=True)
class Assessed:
    """What was found.

    cardinalities: of the sensitive attributes. sizes: of the
    equivalence classes, but those of one row. values: by disclosure measure and sensitive attribute. l_values: l of
    recursive (c,l)-diversity, 0 where not asked for. homogeneous: by attribute, where looked for; groups: of all.
    there: the classes in a population, if there is one.
    """

    asked: Asked
    rows: int
    cardinalities: Mapping[Hashable, int]
    sizes: Sizes
    values: Mapping[str, Mapping[Hashable, float]]
    l_values: int
    homogeneous: Mapping[Hashable, Homogeneous]
    groups: Homogeneous
    device: str
    seconds: Mapping[str, float]
    there: ClassesThere | None = None

    def worst(self, model: str) -> float:
        """The worst value of a disclosure measure, over the attributes."""
        return MODELS[model].worst(self.values[model].values())


class Second(NamedTuple):
    """L of recursive (c,l)-diversity, 0 where it is not asked for, and the measures that it takes a second look at."""

    l_values: int
    measures: Sequence[str]


@dataclass(frozen=True)
class Search:
    """What is looked for in a table or its parts.

    columns: the quasi-identifiers, then the sensitive attributes, or one that is `constant_column`. job: what an engine
    is to do; without codes where parts come one by one. rows: of the table. most: how many homogeneous classes are
    wanted.
    """

    asked: Asked
    columns: Sequence[Column]
    job: Job
    rows: int
    most: int

    @classmethod
    def of(
        cls,
        asked: Asked,
        columns: Sequence[Column],
        rows: int,
        most: int,
        orders: Mapping[Hashable, Sequence[Any]],
        place: str = "host",
    ) -> Search:
        """From the columns that are needed of a table; orders: of ordered categories; place: as `Job.scores_on`.

        Raises InputError; warns.
        """
        check_columns(columns, rows, asked)
        used = [*columns] if asked.sensitive else [*columns, constant_column(rows, len(columns[0].codes))]
        with about_distance():
            job, _ = ask_risk(asked, orders).job(used, rows, place, lambda *_: None)
        return cls(asked, used, replace(job, extremes_only=True), rows, most)

    @property
    def known(self) -> int:
        """How many quasi-identifiers there are."""
        return len(self.asked.quasi_identifiers)

    @cached_property
    def _orders(self) -> list[npt.NDArray[np.int64]]:
        return [value_order(column) for column in self.columns]

    def part(self, targets: Sequence[int], codes: Sequence[npt.NDArray[Any]], times: npt.NDArray[np.int64]) -> Job:
        """The job for a part: rows with these codes, each so many times, and some of the attributes."""
        return part_job(self.job, targets, codes, times)

    def find(self, engine: Engine, job: Job, progress: Progress, workers: Workers, watch: Stopwatch) -> ByAttribute:
        """What is found in a part, or in the whole table."""
        with watch("score"):
            result = engine.score(_narrow(job), progress)
        homogeneous: dict[int, Homogeneous] = {}
        if self.most and self.asked.sensitive:
            with watch("groups"):
                columns = [
                    replace(column, codes=on_host(codes)) for column, codes in zip(self.columns, job.codes, strict=True)
                ]
                rest = (self._orders, self.most, workers, job.times)
                homogeneous = find_homogeneous(columns, self.known, job.targets, *rest)
        return _findings(job, result, homogeneous)

    def second(self, found: ByAttribute) -> Second:
        """What is left to look for; raises InputError for an l that no class can have."""
        models = [model for model in self.asked.models if model.of_l]
        if not models:
            return Second(0, ())
        if self.asked.l_values is None:
            fewest = int(min(one.extremes[MODELS["distinct_l"].cell][0] for one in found.values()))
            return Second(fewest, [model.measure(fewest) for model in models] if fewest > 1 else ())
        sizes = next(iter(found.values())).sizes.sizes
        largest, least = int(sizes.max()) if len(sizes) else 1, self.asked.l_values
        if least > largest:
            raise InputError(f"l: expected at most {largest:,}, the rows of the largest class; got {least:,}.")
        return Second(least, ())

    def find_again(
        self, engine: Engine, job: Job, progress: Progress, measures: Iterable[str], watch: Stopwatch
    ) -> ByAttribute:
        """In a part, or in the whole table, the extremes of measures that were not known to be needed before."""
        again = replace(job, measures=resolve_measures(measures), axes=None)
        with watch("score"):
            return _findings(again, engine.score(_narrow(again), progress), {})

    def conclude(
        self,
        found: ByAttribute,
        second: Second,
        again: ByAttribute,
        device: str,
        seconds: Mapping[str, float],
    ) -> Assessed:
        """What follows from what was found in all parts, at first and again."""
        name_of = {target: self.columns[target].name for target in self.job.targets}
        homogeneous = {name_of[target]: one.homogeneous for target, one in found.items() if one.homogeneous is not None}
        return Assessed(
            asked=self.asked,
            rows=self.rows,
            cardinalities={name_of[target]: self.columns[target].cardinality for target in self.job.targets},
            sizes=next(iter(found.values())).sizes,
            values=self._values(found, second, again),
            l_values=second.l_values,
            homogeneous=homogeneous,
            groups=Homogeneous.total(list(homogeneous.values()), self.most),
            device=device,
            seconds=seconds,
        )

    def _values(self, found: ByAttribute, second: Second, again: ByAttribute) -> dict[str, dict[Hashable, float]]:
        """By disclosure measure and sensitive attribute."""
        values: dict[str, dict[Hashable, float]] = {}
        for model in self.asked.models:
            measure = model.measure(second.l_values)
            looked = again if measure in second.measures else found
            if model.of_l and self.asked.may_look_again and not second.measures:
                measure = FIRST_OF_ALL
            values[model.name] = {}
            for target in self.job.targets:
                extreme = looked[target].extremes[measure][int(model.highest)]
                axis = None if self.job.axes is None else self.job.axes[target]
                values[model.name][self.columns[target].name] = model.finish(extreme, axis)
        return values


def _narrow(job: Job) -> Job:
    """The job of a part without the values that its columns have elsewhere; of a table as it is."""
    return job if job.times is None else dense(job)


def _findings(job: Job, result: EngineResult, homogeneous: Mapping[int, Homogeneous]) -> ByAttribute:
    found = {}
    for place, target in enumerate(job.targets):
        extremes = {name: (float(both[place, 0]), float(both[place, 1])) for name, both in result.extremes.items()}
        # Without sampling weights cohorts are kept by size.
        found[target] = Findings(cast("Sizes", result.cohorts[place]), extremes, homogeneous.get(target))
    return found
