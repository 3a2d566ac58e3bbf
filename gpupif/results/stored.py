"""What `score` returns where the scores went to files instead of memory."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attack.priors import Prior, Priors
from ..errors import InputError
from ..io.formats import written_format
from ..measures import is_measure
from ..utils.percentiles import ONCE, percentiles
from ..utils.validation import percents
from .by_attacker import ByAttacker
from .summary import Summary

if TYPE_CHECKING:
    import pandas as pd

    from ..attack.known_subsets import KnownSubsets
    from .attacker_summary import AttackerSummary
    from .known_subsets_summary import AnyKnownSummary


class StoredScores:
    """Scores of all cells of a table, in files; made by `gpupif.score` with ``output=``.

    path: the file or folder. files: its files, in order of the rows. columns, rows, measures, device, distinct_rows,
    seconds: as of `Scores`. spilled_bytes: of temporary files at most.
    """

    def __init__(
        self,
        path: Path,
        files: Sequence[Path],
        columns: Sequence[Hashable],
        summary: Summary,
        priors: Mapping[Hashable, Prior],
        spilled_bytes: int,
        gain: str = "cig",
    ) -> None:
        self.path = path
        self.files = list(files)
        self.columns = list(columns)
        self.rows = summary.rows
        self.measures = summary.measures
        self.device = summary.device
        self.distinct_rows = summary.distinct_rows
        self.seconds = summary.seconds
        self.spilled_bytes = spilled_bytes
        self._summary = summary
        self._prior_of = priors
        # What the names of columns of CIG begin with: those of several attackers stand beside each other.
        self._gain = gain

    def __repr__(self) -> str:
        return (
            f"<StoredScores of {self.rows:,} rows x {len(self.columns)} columns: {', '.join(self.measures)}; "
            f"device {self.device}; in {self.path}>"
        )

    def __getitem__(self, measure: str) -> Any:
        raise InputError(f"{measure}: the scores are not in memory but in files: read them with dataset().")

    def __getattr__(self, name: str) -> Any:
        if is_measure(name) or name in ("array", "rig", "top", "to_arrow", "to_parquet"):
            raise AttributeError(f"{name}: the scores are not in memory but in files: read them with dataset().")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def priors(self) -> Priors:
        """Per column the distribution used: value to probability, None for missing values."""
        return Priors({name: self._prior_of[name] for name in self.columns})

    @property
    def weights(self) -> dict[Hashable, float]:
        """Per column the weight of wCIG: H(X|known) / H(X), in [0, 1]; 0 where H(X) is 0 (manual, section 1.5)."""
        return dict(zip(self.columns, self._summary.columns["weight"].tolist(), strict=True))

    def dataset(self) -> Any:
        """The scores as a `pyarrow.dataset.Dataset`, to be read column by column or in batches, rows in order."""
        import pyarrow.dataset as ds

        return ds.dataset([str(file) for file in self.files], format=written_format(self.path).dataset)

    def fig(self) -> pd.Series[float]:
        """Feature information gain: the sum of the CIG of each column, in bits (manual, section 1.7.1)."""
        self._check_gains()
        fig: pd.Series[float] = self._summary.columns["fig"].rename_axis(None)
        return fig

    def pif(self, n: float | Sequence[float]) -> Any:
        """PIF_n: the n-th percentile (linear) of the row information gains, in bits (manual, section 1.7.3).

        n: from 0 to 100, one or several; those that the summary does not have are found by reading the files. Raises
        InputError outside that.
        """
        self._check_gains()
        wanted = percents("pif", n)
        known = {float(percent): value for percent, value in self._summary.pif.items()}
        asked = wanted.reshape(-1).tolist()
        if not set(asked) <= set(known):
            known = dict(zip(asked, percentiles(self._row_gains, self.rows, asked), strict=True))
        found = [known[percent] for percent in asked]
        return found[0] if wanted.ndim == 0 else found

    def _check_gains(self) -> None:
        if "cig" not in self.measures:
            raise InputError(f"measures: 'cig' was not scored (scored: {', '.join(self.measures)}). Add it.")

    def _row_gains(self) -> Iterator[tuple[Any, Any]]:
        names = [f"{self._gain}_{column}" for column in self.columns]
        for batch in self.dataset().to_batches(columns=names):
            gains = np.zeros(batch.num_rows)
            for column in batch.columns:
                gains += column.to_numpy()
            yield gains, ONCE

    def summary(self) -> Summary:
        """Risk by column and for the whole table; prints as a table, `.columns` is a DataFrame, `.to_dict()` plain."""
        return self._summary


class StoredAnyKnownScores(StoredScores):
    """Worst and mean scores over all attackers who know any r columns, in files; made by `gpupif.score` with
    ``known=r`` and ``output=``.

    All that `StoredScores` has, of each cell's worst score; ``scores.mean`` has the same of each cell's mean score.
    Both stand in the same files, in columns named <measure>_worst_<column> and <measure>_mean_<column>: ``dataset()``.

    mean: `StoredScores` of the means. subsets: `KnownSubsets`, what the attackers know. weights: by column the lowest
    weight, in ``mean`` the mean weight.
    """

    def __init__(self, worst: StoredScores, mean: StoredScores, subsets: KnownSubsets) -> None:
        self.__dict__.update(worst.__dict__)
        self.mean = mean
        self.subsets = subsets

    def __repr__(self) -> str:
        return (
            f"<StoredAnyKnownScores of {self.rows:,} rows x {len(self.columns)} columns: {', '.join(self.measures)}; "
            f"any {self.subsets.known} columns known: {self.subsets!r}; device {self.device}; in {self.path}>"
        )

    def summary(self) -> AnyKnownSummary:
        """Risk by column and for the whole table, of the worst scores, and of the mean scores under ``.mean``."""
        from .known_subsets_summary import AnyKnownSummary

        return AnyKnownSummary.of(self._summary, self.mean.summary(), self.subsets)


class StoredAttackerScores(ByAttacker[StoredScores]):
    """Scores against several attackers, in files; made by `gpupif.score` with ``attackers=`` and ``output=``.

    A dictionary by attacker: ``scores["neighbour"].summary()``, ``.fig()``, ``.pif(n)``. The scores of all stand in the
    same files, in columns named <attacker>_<measure>_<column>: ``dataset()``.

    path, files, columns, rows, measures, device, seconds, spilled_bytes: as of `StoredScores`; attackers: by name the
    columns that each knows.
    """

    def __init__(self, scores: Mapping[str, StoredScores], attackers: Mapping[str, Sequence[Hashable]]) -> None:
        super().__init__(scores, attackers)
        last = list(scores.values())[-1]
        self.path = last.path
        self.files = last.files
        self.rows = last.rows
        self.seconds = last.seconds
        self.spilled_bytes = last.spilled_bytes

    def __repr__(self) -> str:
        return (
            f"<StoredAttackerScores of {self.rows:,} rows x {len(self.columns)} columns: {', '.join(self.measures)}; "
            f"attackers {', '.join(self)}; device {self.device}; in {self.path}>"
        )

    def __getattr__(self, name: str) -> Any:
        if is_measure(name) or name in ("worst", "to_arrow", "to_parquet"):
            raise AttributeError(f"{name}: the scores are not in memory but in files: read them with dataset().")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def dataset(self) -> Any:
        """The scores as a `pyarrow.dataset.Dataset`, to be read column by column or in batches, rows in order."""
        return next(iter(self._scores.values())).dataset()

    def summary(self) -> AttackerSummary:
        """Risk by attacker, and by column against which it is highest; prints as tables, `.to_dict()` is plain."""
        from .attacker_summary import summarize_attackers

        return summarize_attackers({name: scores.summary() for name, scores in self.items()}, self.attackers)
