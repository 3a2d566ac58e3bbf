"""The population of a Dask frame: another Dask frame, files, or a table in memory."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..frames.dask_frame import check_dask_frame, is_dask
from ..frames.open import open_frame
from ..io.paths import find_input
from ..pipeline.task_graph import Result
from ..utils.validation import check_exist, check_unique
from .dask_graph import Graph
from .parquet_partitions import read_files


def open_dask_population(population: Any, used: Sequence[Hashable]) -> Any:
    """Return a population of any kind as a Dask frame or a table in memory, with its columns checked.

    Raises InputError.
    """
    if isinstance(population, str | os.PathLike):
        given = find_input(Path(population))

        def pick(names: Sequence[str]) -> list[str]:
            check_exist("population", used, names, "the population")
            return [name for name in names if name in used]

        population = read_files("population", given, pick).frame
    if is_dask(population):
        check_dask_frame(population, "population")
        names = list(population.columns)
    else:
        try:
            names = list(open_frame(population).names)
        except InputError as error:
            raise error.about("population") from None
    check_unique(names, "population")
    check_exist("population", used, names, "the population")
    return population


def population_chunks(graph: Graph, population: Any, used: Sequence[Hashable]) -> list[Result]:
    """Return the partitions of a population as chunks; a table in memory is one chunk."""
    if is_dask(population):
        narrow = population[list(used)] if list(population.columns) != list(used) else population
        return graph.take(narrow)
    return [graph.given("population", population)]
