"""Scores of a Dask frame: lazy frames, all of one graph."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..attack.worst_mean import folded_name, folded_names
from ..errors import InputError
from ..io.write import attacker_names, output_names
from ..measures import Measure, find_measure, is_measure
from ..results.by_attacker import ByAttacker
from .write import write_scores

if TYPE_CHECKING:
    import dask.dataframe as dd
    from dask.delayed import Delayed

    from ..attack.known_subsets import KnownSubsets

# What scores in memory have and those of a Dask frame lack, with what to do instead.
LACKING = {
    "top": "sort what scores.frame().compute() gives, or use scores.cig.nlargest(20, column) and the like",
    "summary": 'score its Parquet files: gpupif.score("table/", output="scores/").summary()',
    "pif": 'score its Parquet files: gpupif.score("table/", output="scores/").pif(95)',
    "array": "use scores.cig.to_dask_array(), or scores.frame().compute().to_numpy()",
    "to_arrow": "read what scores.to_parquet(folder) writes: pyarrow.parquet.read_table(folder)",
    "write": "use scores.to_parquet(folder)",
}


class DaskScores:
    """Scores of all cells of a Dask frame; made by `gpupif.score`. Nothing is computed before Dask is asked to.

    Each measure that was asked for is an attribute and an item (``scores.cig``, ``scores["csf"]``): a Dask frame with
    the partitions, rows, order, index and divisions of the table, one column for each scored one. All share one graph:
    what computes several at once (``dask.compute(scores.cig, scores.csf)``, `persist`, `to_parquet`) scores the table
    once, each alone scores it again.

    columns: the scored columns. measures: those that were asked for. device: the device that was asked for. rows: how
    many, a lazy scalar. weights: of wCIG, a lazy series by column. priors: those of `Scores`, ``Delayed``. There is no
    `top`, `summary`, `pif` nor `array`: they need all rows in one place, which `frame().compute()` brings them to.
    """

    def __init__(
        self,
        frames: Mapping[str, dd.DataFrame],
        columns: Sequence[Hashable],
        device: str,
        rows: Any,
        weights: Any,
        priors: Delayed,
        fold: str | None = None,
    ) -> None:
        self.columns = list(columns)
        self.measures = tuple(frames)
        self.device = device
        self.rows = rows
        self.weights = weights
        self.priors = priors
        self._frames = dict(frames)
        # Over attackers: the worst, or the mean.
        self._fold = fold

    def __getitem__(self, measure: str) -> dd.DataFrame:
        """Scores of one measure."""
        if measure not in self._frames:
            raise InputError(
                f"measures: {measure!r} was not scored (scored: {', '.join(self.measures)}). "
                f"Add it: gpupif.score(table, measures=[..., {measure!r}])."
            )
        return self._frames[measure]

    def __getattr__(self, name: str) -> Any:
        if is_measure(name) or name in self.__dict__.get("_frames", {}):
            return self[name]
        if name in LACKING:
            raise _lacking(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.measures]

    def __repr__(self) -> str:
        partitions = next(iter(self._frames.values())).npartitions
        return (
            f"<DaskScores of {partitions:,} partitions x {len(self.columns)} columns: {', '.join(self.measures)}; lazy>"
        )

    def fig(self) -> Any:
        """Feature information gain: the sum of the CIG of each column, in bits; a lazy series.

        Partitions are summed apart, so the last bits may differ from those of a table in one piece.
        """
        return self["cig"].sum()

    def rig(self) -> Any:
        """Row information gain: the sum of the CIG of each row, in bits; a lazy series."""
        meta = self["cig"]._meta.sum(axis=1).rename("rig")
        return self["cig"].map_partitions(_row_gains, meta=meta)

    def frame(self) -> dd.DataFrame:
        """All scores in one lazy frame, columns named <measure>_<column>; raises OutputError where names repeat."""
        from dask.dataframe import map_partitions

        outputs = self._outputs()
        names, frames = output_names(list(outputs), self.columns, []), list(outputs.values())
        meta = _side_by_side(names, *(frame._meta for frame in frames))
        return map_partitions(_side_by_side, names, *frames, meta=meta, align_dataframes=False)

    def to_parquet(self, path: str | os.PathLike[str], *, overwrite: bool = True, **options: Any) -> None:
        """Score and write all scores to a folder of Parquet files, columns named <measure>_<column>, rows in order.

        The folder appears whole or not at all; workers have to see it under the same path. overwrite: replace a folder
        that holds nothing but scores of gpupif. What a URL (``s3://...``) names must be empty, and is written in place.
        options: of ``dask.dataframe.DataFrame.to_parquet``, such as ``write_index=False``. Not ``compute=False``,
        ``append``, ``partition_on`` and ``filesystem``.

        Raises OutputError where the folder cannot be written or holds anything else, and InputError for these options.
        """
        write_scores(self.frame(), path, overwrite, options)

    def persist(self, **options: Any) -> DaskScores:
        """Score once and keep all scores in the memory of the workers; returns them, at once on a cluster."""
        import dask

        frames, weights = dask.persist(self._frames, self.weights, **options)
        return self._with(frames, weights)

    def _with(self, frames: Mapping[str, dd.DataFrame], weights: Any) -> DaskScores:
        """The same scores, computed."""
        return DaskScores(frames, self.columns, self.device, self.rows, weights, self.priors, self._fold)

    def _outputs(self) -> dict[str, dd.DataFrame]:
        """The frames that `frame` joins, by what the names of its columns begin with."""
        if self._fold is None:
            return self._frames
        return {folded_name(name, self._fold): frame for name, frame in self._frames.items()}


class DaskAnyKnownScores(DaskScores):
    """Worst and mean scores of a Dask frame over all attackers who know any r columns; made by `gpupif.score` with
    ``known=r``. Lazy.

    All that `DaskScores` has, of each cell's worst score; ``scores.mean`` has the same of each cell's mean score. Both
    share one graph. `frame` and `to_parquet` have both, columns named <measure>_worst_<column> and
    <measure>_mean_<column>.

    mean: `DaskScores` of the means. subsets: `KnownSubsets`, what the attackers know. weights: by column the lowest
    weight, in ``mean`` the mean weight.
    """

    def __init__(self, worst: DaskScores, mean: DaskScores, subsets: KnownSubsets) -> None:
        self.__dict__.update(worst.__dict__)
        self.mean = mean
        self.subsets = subsets

    def __repr__(self) -> str:
        partitions = next(iter(self._frames.values())).npartitions
        return (
            f"<DaskAnyKnownScores of {partitions:,} partitions x {len(self.columns)} columns: "
            f"{', '.join(self.measures)}; any {self.subsets.known} columns known: {self.subsets!r}; lazy>"
        )

    def _outputs(self) -> dict[str, dd.DataFrame]:
        each = {**super()._outputs(), **self.mean._outputs()}
        return {name: each[name] for name in folded_names(self.measures)}

    def persist(self, **options: Any) -> DaskAnyKnownScores:
        """Score once and keep all scores in the memory of the workers; returns them, at once on a cluster."""
        import dask

        sides = (self, self.mean)
        kept = dask.persist(*((scores._frames, scores.weights) for scores in sides), **options)
        worst, mean = (scores._with(*both) for scores, both in zip(sides, kept, strict=True))
        return DaskAnyKnownScores(worst, mean, self.subsets)


class DaskAttackerScores(ByAttacker[DaskScores]):
    """Scores of a Dask frame against several attackers; made by `gpupif.score` with ``attackers=``. Lazy.

    A dictionary by attacker of `DaskScores`. Each has a graph of its own; what computes several at once (`to_parquet`,
    ``dask.compute(scores["a"].cig, scores["b"].cig)``) reads the table once.

    attackers: by name the columns that each knows. columns, measures, device: as of `DaskScores`.
    """

    def __getattr__(self, name: str) -> Any:
        if name in LACKING:
            raise _lacking(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return (
            f"<DaskAttackerScores of {len(self.columns)} columns: {', '.join(self.measures)}; "
            f"attackers {', '.join(self)}; lazy>"
        )

    def worst(self, measure: str) -> dd.DataFrame:
        """Of each cell the score against the attacker who is worst for it, lazy; see `AttackerScores.worst`."""
        from dask.dataframe import map_partitions

        frames = [scores[measure] for scores in self.values()]
        kind = find_measure(measure)
        return map_partitions(_worst, kind, *frames, meta=frames[0]._meta, align_dataframes=False)

    def frame(self) -> dd.DataFrame:
        """All scores in one lazy frame, columns named <attacker>_<measure>_<column>.

        Raises OutputError where names repeat.
        """
        from dask.dataframe import map_partitions

        each = {name: scores._outputs() for name, scores in self.items()}
        names = attacker_names({name: list(outputs) for name, outputs in each.items()}, self.columns, [])
        frames = [frame for outputs in each.values() for frame in outputs.values()]
        meta = _side_by_side(names, *(frame._meta for frame in frames))
        return map_partitions(_side_by_side, names, *frames, meta=meta, align_dataframes=False)

    def to_parquet(self, path: str | os.PathLike[str], *, overwrite: bool = True, **options: Any) -> None:
        """Score and write all scores to a folder of Parquet files, named as by `frame`; see `DaskScores.to_parquet`."""
        write_scores(self.frame(), path, overwrite, options)


def _lacking(scores: Any, name: str) -> AttributeError:
    """The error of what needs all rows in one place."""
    return AttributeError(
        f"{name}: not there for scores of a Dask frame, whose rows lie in many places. Instead, {LACKING[name]}; or "
        "score in memory what fits: gpupif.score(table.compute())."
    )


def _worst(measure: Measure, first: Any, *others: Any) -> Any:
    """The riskiest of several frames' values at each place, see `AttackerScores.worst`."""

    def risks(frame: Any) -> Any:
        if not measure.low_is_risky:
            return frame
        weighted = measure.of_size and frame.dtypes.iloc[0].kind == "f"
        return (-frame).where(frame != 0, -math.inf) if weighted else -frame

    for other in others:
        first = first.where((risks(first) >= risks(other)) | (first != first), other)
    return first


def _row_gains(frame: Any) -> Any:
    """The sum of each row, columns added in their order."""
    columns = [frame.iloc[:, place] for place in range(frame.shape[1])]
    total = columns[0].astype(np.float64)
    for column in columns[1:]:
        total = total + column
    return total.rename("rig")


def _side_by_side(names: Sequence[str], *frames: Any) -> Any:
    """The columns of several frames with the same rows in one, under new names."""
    import dask.dataframe as dd

    joined = dd.methods.concat(list(frames), axis=1)
    joined.columns = pd.Index(names)
    return joined
