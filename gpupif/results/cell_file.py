"""Scores of which a file holds some cells only, those that were asked for, and what all of them come to."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from ..errors import NotScoredError
from ..io.base import Stamp
from .base import CellSource, QueryResult, ScoreQuery, ScoresDescription, WriteRequest
from .cell_layout import COLUMN, ROW, VALUE
from .local_cell_source import write_cells
from .outputs import CellScore, ScoreView
from .provenance import to_metadata
from .selection import CellQuery, Selection
from .stored_base import StoredBacking


class ScorelessBacking(StoredBacking):
    """What scores come to, where they are not kept."""

    def frame(self, score: CellScore) -> NoReturn:
        raise self._not_there()

    def array(self, score: CellScore) -> NoReturn:
        raise self._not_there()

    def row_sums(self, score: CellScore, name: str) -> NoReturn:
        raise self._not_there()

    def find(self, query: ScoreQuery) -> QueryResult:
        raise self._not_there()

    def joined(self, outputs: Mapping[str, CellScore]) -> NoReturn:
        raise self._not_there()

    def to_arrow(self, outputs: Mapping[str, CellScore], keep_input: bool) -> NoReturn:
        raise self._not_there()

    def write(self, writing: WriteRequest) -> NoReturn:
        raise self._not_there()

    def cells(self, query: CellQuery) -> CellSource:
        raise self._not_there()

    @abstractmethod
    def _not_there(self) -> NotScoredError:
        """Said to who asks for scores."""


class SummaryBacking(ScorelessBacking):
    """Scores that nobody keeps."""

    def __init__(self, path: Path, *given: Any) -> None:
        super().__init__(path, *given)
        self.path = None

    def where(self) -> str:
        return f"device {self.about.device}; not kept"

    def _column_types(self) -> dict[str, pa.DataType]:
        return {}

    def _not_there(self) -> NotScoredError:
        return NotScoredError(
            "scores: were not kept, only what they come to (summary_only). Score the table again, without that."
        )


class CellFileBacking(ScorelessBacking):
    """Cells in a file, in place of all scores."""

    def __init__(self, path: Path, stamps: Mapping[Path, Stamp], description: ScoresDescription, *given: Any) -> None:
        super().__init__(path, stamps, description, *given)
        self._selection = Selection.of(**(description.cells or {}))

    def where(self) -> str:
        return f"{super().where()}, which holds {self._selection}"

    def cells(self, query: CellQuery) -> CellSource:
        """See `Backing`; raises NotScoredError for others than those that are there."""
        if query.asked != Selection().to_dict() or list(query.shown) != list(self._view.outputs()):
            raise self._not_there()
        return _CellFileSource(self)

    def tables(self) -> Iterator[pa.Table]:
        """The cells that are there."""
        with self._reading():
            dataset = self._dataset()
            yield dataset.schema.empty_table()
            for batch in dataset.to_batches():
                yield pa.Table.from_batches([batch])

    @property
    def cell_columns(self) -> list[str]:
        """Names of the columns of the file."""
        with self._reading():
            return list(self._dataset().schema.names)

    def count(self) -> int:
        """How many cells there are."""
        with self._reading():
            return int(self._dataset().count_rows())

    def describe(self, description: ScoresDescription) -> ScoresDescription:
        """What a copy of the file is to say."""
        return replace(description, cells=self._selection.to_dict())

    @property
    def _view(self) -> ScoreView:
        return ScoreView(self.about.measures, tuple(self.attackers), self.about.dtype)

    def _column_types(self) -> dict[str, pa.DataType]:
        scores = {output: pa.from_numpy_dtype(np.dtype(kind)) for output, kind in self._view.types().items()}
        return {ROW: pa.int64(), COLUMN: pa.string(), VALUE: pa.string(), **scores}

    def _not_there(self) -> NotScoredError:
        return NotScoredError(
            f"{self.path}: holds {self._selection}, not the scores of all. Read them with scores.cells(), "
            "without a condition, or score the table again without where= and top=."
        )


@dataclass(eq=False)
class _CellFileSource(CellSource):
    """See `CellSource`."""

    kept: CellFileBacking

    def __post_init__(self) -> None:
        self.columns = self.kept.cell_columns

    def tables(self) -> Iterator[pa.Table]:
        return self.kept.tables()

    def count(self) -> int:
        return self.kept.count()

    def write(
        self,
        path: str | os.PathLike[str],
        overwrite: bool,
        describe: Callable[[bool], ScoresDescription],
        options: Mapping[str, Any],
    ) -> int:
        return write_cells(self.tables(), path, overwrite, lambda: to_metadata(self.kept.describe(describe(True))))
