"""Scores of which files hold only some cells (`where=`, `top=`) or none (`summary_only=`), and the facts about all."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from ..errors import NotScoredError
from ..io.base import Stamp
from .backing import CellSource, ScoresDescription
from .cell_selection import CellQuery, Selection
from .cell_table import COLUMN, ROW, VALUE
from .in_files import StoredBacking
from .score_outputs import ScoreView


class ScorelessBacking(StoredBacking):
    """The facts about scores that are not kept. Requests for scores raise NotScoredError."""

    @abstractmethod
    def _not_there(self) -> NotScoredError:
        """Return the error for a request for scores."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise self._not_there()

    frame = array = row_sums = fold = find = joined = to_arrow = write = _refuse

    def cells(self, query: CellQuery) -> CellSource:
        raise self._not_there()


class SummaryBacking(ScorelessBacking):
    """The facts about scores of which no file holds any."""

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
    """The cells in a file, in place of all scores."""

    def __init__(self, path: Path, stamps: Mapping[Path, Stamp], description: ScoresDescription, *given: Any) -> None:
        super().__init__(path, stamps, description, *given)
        self.selection = Selection.from_user(**(description.cells or {}))
        self._view = ScoreView(self.about.measures, tuple(self.attackers), self.about.dtype)

    def where(self) -> str:
        return f"{super().where()}, which holds {self.selection}"

    def cells(self, query: CellQuery) -> CellSource:
        """See `Backing`; raises NotScoredError for other cells than those in the file."""
        if query.asked != Selection().to_dict() or list(query.shown) != list(self._view.outputs()):
            raise self._not_there()
        return _CellFileSource(self)

    @contextlib.contextmanager
    def opened(self) -> Iterator[ds.Dataset]:
        """Open the file while the block runs. Raises TableReadError."""
        with self._reading():
            yield self._dataset()

    def _column_types(self) -> dict[str, pa.DataType]:
        scores = {output: pa.from_numpy_dtype(np.dtype(kind)) for output, kind in self._view.types().items()}
        return {ROW: pa.int64(), COLUMN: pa.string(), VALUE: pa.string(), **scores}

    def _not_there(self) -> NotScoredError:
        return NotScoredError(
            f"{self.path}: holds {self.selection}, not the scores of all. Read them with scores.cells(), "
            "without a condition, or score the table again without where= and top=."
        )


class _CellFileSource(CellSource):
    """The cells of a file. Reading them raises TableReadError."""

    def __init__(self, file: CellFileBacking) -> None:
        with file.opened() as dataset:
            self.columns = list(dataset.schema.names)
        self.selection = file.selection
        self._file = file

    def tables(self) -> Iterator[pa.Table]:
        with self._file.opened() as dataset:
            yield dataset.schema.empty_table()
            for batch in dataset.to_batches():
                yield pa.Table.from_batches([batch])

    def count(self) -> int:
        with self._file.opened() as dataset:
            return int(dataset.count_rows())
