"""Scores of the same cells against several attackers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..io.formats import PARQUET
from ..io.write import attacker_names, check_output, row_groups, write_tables
from ..measures import as_risk, find_measure, is_measure
from .by_attacker import ByAttacker

if TYPE_CHECKING:
    from collections.abc import Hashable

    import pyarrow as pa

    from .attacker_summary import AttackerSummary
    from .scores import Scores


class AttackerScores(ByAttacker["Scores"]):
    """Scores of all cells of a table against each of several attackers; made by `gpupif.score` with ``attackers=``.

    A dictionary by attacker, in the order given: ``scores["neighbour"].cig`` is what ``known=`` of that attacker alone
    gives, to the last bit. The table is read and its values are numbered once for all of them.

    attackers: by name the columns that each knows. columns: the scored columns. measures, rows, device: as of `Scores`.
    """

    def __init__(self, scores: Mapping[str, Scores], attackers: Mapping[str, Sequence[Hashable]]) -> None:
        super().__init__(scores, attackers)
        self._first = next(iter(scores.values()))
        self.rows = self._first.rows
        self.seconds: dict[str, float] = {}
        for one in scores.values():
            for stage, seconds in one.seconds.items():
                before = self.seconds.get(stage, 0.0)
                self.seconds[stage] = before + seconds if stage == "score" else seconds

    def __repr__(self) -> str:
        return (
            f"<AttackerScores of {self.rows:,} rows x {len(self.columns)} columns: {', '.join(self.measures)}; "
            f"attackers {', '.join(self)}; device {self.device}>"
        )

    def worst(self, measure: str) -> Any:
        """Of each cell the score against the attacker who is worst for it.

        measure: one of those scored. The highest score is the worst; the lowest of ``prior``, ``cohort_size``,
        ``class_size``, ``entropy``, ``distinct_values`` and ``population_size``, but a size of 0 (weights), that of
        nobody, only where it is so against all. n rows by scored columns, a frame of the kind that came in, as those of
        `Scores`. Raises InputError for one that was not scored.
        """
        frame = self._first._frame
        with frame.active():
            arrays = [scores.array(measure) for scores in self.values()]
            kind = find_measure(measure)
            worst = arrays[0].copy()
            for array in arrays[1:]:
                # Column by column, so that little memory is taken beside.
                for most, other in zip(worst, array, strict=True):
                    worse = as_risk(kind, other) > as_risk(kind, most)
                    # Where nothing can be said against one of them (NaN), nothing can of the worst.
                    worse |= other != other
                    most[worse] = other[worse]
        return frame.wrap(worst, self.columns)

    def summary(self) -> AttackerSummary:
        """Risk by attacker, and by column against which it is highest; prints as tables, `.to_dict()` is plain."""
        from .attacker_summary import summarize_attackers

        return summarize_attackers({name: scores.summary() for name, scores in self.items()}, self.attackers)

    def to_arrow(self, keep_input: bool = False) -> pa.Table:
        """All scores as one Arrow table, columns named <attacker>_<measure>_<column>, rows in order.

        As `Scores.to_arrow`. Raises OutputError where names collide.
        """
        return self._part(0, self.rows, *self._beside(keep_input))

    def _beside(self, keep_input: bool) -> tuple[pa.Table | None, pa.Table | None, list[str]]:
        """See `Scores`."""
        source, labels, _ = self._first._beside(keep_input)
        others = [*(source.column_names if source else []), *(labels.column_names if labels else [])]
        return (
            source,
            labels,
            attacker_names({name: list(scores._outputs()) for name, scores in self.items()}, self.columns, others),
        )

    def _part(
        self, start: int, stop: int, source: pa.Table | None, labels: pa.Table | None, names: Sequence[str]
    ) -> pa.Table:
        """Some rows of `to_arrow`."""
        parts = []
        first = 0
        for number, scores in enumerate(self.values()):
            own = names[first : first + len(scores._outputs()) * len(self.columns)]
            first += len(own)
            last = number == len(self) - 1
            parts.append(scores._part(start, stop, None if number else source, labels if last else None, own))
        table = parts[0]
        for part in parts[1:]:
            for name, column in zip(part.column_names, part.columns, strict=True):
                table = table.append_column(name, column)
        return table.replace_schema_metadata(parts[-1].schema.metadata)

    def to_parquet(self, path: str | os.PathLike[str], *, keep_input: bool = False, overwrite: bool = True) -> None:
        """Write all scores to one Parquet file, columns named <attacker>_<measure>_<column>, rows in order.

        As `Scores.to_parquet`.
        """
        check_output(path, overwrite, endings=PARQUET.written)
        self.write(path, keep_input, overwrite)

    def write(
        self,
        path: str | os.PathLike[str],
        keep_input: bool = False,
        overwrite: bool = True,
        done: Callable[[int], None] = lambda rows: None,
    ) -> None:
        """As `to_parquet`, also to CSV and Feather, by the name's ending; `done` hears how many rows went out."""
        source, labels, names = self._beside(keep_input)
        parts = (self._part(start, stop, source, labels, names) for start, stop in row_groups(self.rows))
        write_tables(parts, path, done, overwrite)

    def __getattr__(self, name: str) -> Any:
        if is_measure(name) or name in ("array", "fig", "pif", "rig", "top"):
            raise AttributeError(f"{name}: is of one attacker: scores[{next(iter(self._scores))!r}].{name}.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
