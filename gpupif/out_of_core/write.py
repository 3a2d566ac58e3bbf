"""Score files written, and, when all are, brought to where they were asked for."""

from __future__ import annotations

import contextlib
import stat
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..attack.request import ScoreRequest
from ..io.base import Source
from ..io.checkpoints import identity, replace_folder
from ..io.formats import PARQUET, written_format
from ..io.ipc_batches import disk_errors
from ..io.score_files import ScoreFile, is_file
from ..io.write import attacker_names, write_tables
from ..results.base import ScoresDescription
from ..results.provenance import FOLDER_FILE, in_one_file, to_metadata, write_folder_file
from ..rows.threads import Workers
from ..utils.progress import Reporter
from .budget import Budget
from .gather import RowReader, prefetched
from .gather_attackers import AttackerGatherers
from .options import OutputOptions

# Score files that are written at the same time, each chunk by chunk: as many chunks as the memory is shared for.
LANES = 2
# Chunks that a run of score files has at least: the one that two runs share is put together twice.
LEAST_CHUNKS = 8

# By measure (targets, rows).
Scores = dict[str, Any]


@dataclass(eq=False)
class ScoreWriter:
    """Writes score files to the folder `scores` in `folder`, each of which appears whole, and publishes them."""

    source: Source
    request: ScoreRequest
    options: OutputOptions
    folder: Path
    budget: Budget
    report: Reporter
    _failed: BaseException | None = field(init=False, default=None)

    def write(
        self,
        gatherer: AttackerGatherers,
        sizes: Sequence[int],
        outputs: Sequence[ScoreFile],
        describe: Callable[[bool], ScoresDescription],
    ) -> None:
        """Write the score files that are not there yet; describe: what they are to say, with summaries or without."""
        folder = self.folder / "scores"
        self._describe = describe
        with disk_errors(folder):
            folder.mkdir(exist_ok=True)
            gatherer.make_folders()
        _remove_others(folder, outputs)
        left = [piece for piece in outputs if not (folder / piece.path).exists()]
        self.report.stage("write", sum(sizes), "rows")
        if left:
            self._write_files(gatherer, sizes, outputs, left)
        if not is_file(self.options.output):
            with disk_errors(folder):
                write_folder_file(folder / FOLDER_FILE, pq.read_schema(folder / outputs[0].path), describe(True))

    def _write_files(
        self, gatherer: AttackerGatherers, sizes: Sequence[int], outputs: Sequence[ScoreFile], left: Sequence[ScoreFile]
    ) -> None:
        self.report.advance(_rows_of(outputs) - _rows_of(left))
        # A table's own columns are read in order, by one thread.
        runs = [left] if self.options.keep_input else _runs(left, LEAST_CHUNKS * sizes[0])
        lanes = min(LANES, len(runs))
        with Workers(lanes) as workers:
            workers.run(lambda run: self._write_lane(gatherer, sizes, run, lanes), [(run,) for run in runs])

    def _write_lane(
        self, gatherer: AttackerGatherers, sizes: Sequence[int], run: Sequence[ScoreFile], lanes: int
    ) -> None:
        """Write a run; where it fails, or is interrupted, the others stop too."""
        try:
            self._write_run(gatherer, sizes, run, lanes)
        except BaseException as error:
            self._failed = self._failed or error
            raise

    def _written(self, rows: int) -> None:
        if self._failed is not None:
            raise self._failed
        self.report.advance(rows)

    def _write_run(
        self, gatherer: AttackerGatherers, sizes: Sequence[int], run: Sequence[ScoreFile], lanes: int
    ) -> None:
        """Write score files that follow each other."""
        ends = list(accumulate(sizes))
        first = bisect_right(ends, run[0].start, hi=len(sizes) - 1)
        last = bisect_left(ends, run[-1].stop, lo=first, hi=len(sizes) - 1) + 1
        # What the names of folders hold they hold for the score files too.
        in_folders = not is_file(self.options.output) and self.options.rows_per_file is None
        held = self.source.folder_columns if in_folders else ()
        given = _Input(self.source, self.budget, held) if self.options.keep_input else None
        threads = None if lanes == 1 else 1
        with contextlib.ExitStack() as closing:
            made = gatherer.chunks(first, last, sizes, run[0].start, threads)
            chunks = closing.enter_context(contextlib.closing(made))
            if lanes == 1:
                chunks = closing.enter_context(contextlib.closing(prefetched(chunks)))
            rows = RowReader(chunks, ends[first] - sizes[first], _rows_in, _some_rows)
            for piece in run:
                file = self.folder / "scores" / piece.path
                with disk_errors(file):
                    file.parent.mkdir(parents=True, exist_ok=True)
                tables = self._tables(gatherer, rows, piece, given)
                write_tables(tables, file, self._written, describe=self._metadata)

    def _tables(
        self, gatherer: AttackerGatherers, rows: RowReader[Scores], piece: ScoreFile, given: _Input | None
    ) -> Iterator[pa.Table]:
        """The rows of a score file, piece by piece."""
        names = attacker_names(self.request.output_names, self.request.targets, [])
        if piece.start == piece.stop:
            columns = [pa.array(column) for column in gatherer.nothing()]
            yield self._beside(columns, names, None if given is None else given.nothing())
        start = piece.start
        for arrays in rows.between(piece.start, piece.stop):
            columns = [pa.array(column) for array in arrays.values() for column in array]
            size = len(columns[0])
            yield self._beside(columns, names, None if given is None else given.rows(start, size))
            start += size

    @staticmethod
    def _beside(columns: list[Any], names: Sequence[str], given: pa.Table | None) -> pa.Table:
        """Scores, and before them the table's own columns, where they are wanted."""
        if given is None:
            return pa.table(columns, names=names)
        return pa.table([*given.columns, *columns], names=[*given.column_names, *names])

    def _metadata(self) -> Mapping[bytes, bytes]:
        """What a score file says of itself."""
        if is_file(self.options.output):
            # Others than Parquet have it before the scores, of which a summary is made.
            return to_metadata(self._describe(written_format(self.options.output) is PARQUET))
        return self._of_each_file

    @cached_property
    def _of_each_file(self) -> Mapping[bytes, bytes]:
        return to_metadata(in_one_file(self._describe(False)))

    def publish(self, outputs: Sequence[ScoreFile], known: list[int]) -> None:
        """Have the scores, whose identity is known, appear as a whole where they were asked for; they may be there."""
        output = self.options.output.resolve()
        staged = self.staged(outputs)
        if output.exists() and identity(output) == known:
            return
        with disk_errors(output):
            if is_file(self.options.output):
                if output.exists():
                    staged.chmod(stat.S_IMODE(output.stat().st_mode))
                staged.replace(output)
            else:
                replace_folder(staged, output)

    def staged(self, outputs: Sequence[ScoreFile]) -> Path:
        """The file or folder that is to be published."""
        folder = self.folder / "scores"
        return folder / outputs[0].path if is_file(self.options.output) else folder


def _rows_in(scores: Scores) -> int:
    return int(next(iter(scores.values())).shape[1])


def _some_rows(scores: Scores, rows: slice) -> Scores:
    return {name: array[:, rows] for name, array in scores.items()}


def _rows_of(pieces: Sequence[ScoreFile]) -> int:
    return sum(piece.stop - piece.start for piece in pieces)


def _runs(pieces: Sequence[ScoreFile], rows: int) -> list[list[ScoreFile]]:
    """Score files that follow each other, in runs of at least so many rows, but for the last."""
    runs: list[list[ScoreFile]] = [[]]
    for piece in pieces:
        # After a kill files are missing here and there.
        follows = not runs[-1] or runs[-1][-1].stop == piece.start
        if runs[-1] and (not follows or _rows_of(runs[-1]) >= rows):
            runs.append([])
        runs[-1].append(piece)
    return runs


def _remove_others(folder: Path, outputs: Sequence[ScoreFile]) -> None:
    """Remove from finished scores what a run left that was killed in the middle of a file."""
    finished = {folder / piece.path for piece in outputs}
    for entry in folder.rglob("*"):
        if entry.is_file() and entry not in finished:
            entry.unlink()


class _Input:
    """The table's own rows, read again in order, to stand beside the scores."""

    def __init__(self, source: Source, budget: Budget, left_out: Sequence[str]) -> None:
        self._source = source
        self._names = [name for name in source.names if name not in left_out]
        read = source.read(self._names, budget.chunk_rows, budget.values_bytes())
        self._rows = RowReader[pa.Table](
            (piece for _, piece in read), 0, len, lambda piece, rows: piece.slice(rows.start, rows.stop - rows.start)
        )

    def nothing(self) -> pa.Table:
        """No rows."""
        return self._source.nothing().select(self._names)

    def rows(self, start: int, size: int) -> pa.Table:
        """So many rows from `start` on."""
        return pa.concat_tables(self._source.as_given(piece) for piece in self._rows.between(start, start + size))
