"""Score files written, and, when all are, brought to where they were asked for."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from .. import __version__
from ..job import Question
from ..progress import Reporter
from ..sources import Source
from ..writing import output_names, write_tables
from .gather import Gatherer, Rows, ahead
from .outputs import MARK, Piece, is_file
from .store import disk_errors
from .wish import Wish


class ScoreWriter:
    """Writes score files to the folder `scores` in `folder`, each of which appears whole, and publishes them."""

    def __init__(
        self, source: Source, question: Question, wish: Wish, folder: Path, chunk_rows: int, report: Reporter
    ) -> None:
        self.source = source
        self.question = question
        self.wish = wish
        self.folder = folder
        self.chunk_rows = chunk_rows
        self.report = report

    def write(self, gatherer: Gatherer, sizes: Sequence[int], outputs: Sequence[Piece]) -> None:
        """Write the score files that are not there yet."""
        folder = self.folder / "scores"
        with disk_errors(folder):
            folder.mkdir(exist_ok=True)
            gatherer.folder.mkdir(exist_ok=True)
        _remove_others(folder, outputs)
        left = [piece for piece in outputs if not (folder / piece.path).exists()]
        self.report.stage("write", sum(sizes), "rows")
        if left:
            size = sizes[0]
            first = min(left[0].start // size, len(sizes) - 1)
            self.report.advance(left[0].start)
            rows = Rows(ahead(gatherer.chunks(first, sizes)), first * size)
            given = _Input(self.source, self.chunk_rows) if self.wish.keep_input else None
            for piece in left:
                file = folder / piece.path
                with disk_errors(file):
                    file.parent.mkdir(parents=True, exist_ok=True)
                write_tables(self._tables(gatherer, rows, piece, given), file, self.report.advance)

    def _tables(self, gatherer: Gatherer, rows: Rows, piece: Piece, given: _Input | None) -> Iterator[pa.Table]:
        """The rows of a score file, piece by piece."""
        job = gatherer.job
        names = output_names([measure.name for measure in job.measures], self.question.targets, [])
        if piece.start == piece.stop:
            kinds = [
                pa.from_numpy_dtype("int64" if m.integer else job.dtype) for m in job.measures for _ in job.targets
            ]
            yield self._marked(pa.schema(list(zip(names, kinds, strict=True))).empty_table())
        start = piece.start
        for arrays in rows.between(piece.start, piece.stop):
            columns = [pa.array(column) for array in arrays.values() for column in array]
            table = pa.table(columns, names=names)
            if given is not None:
                beside = given.rows(start, table.num_rows)
                table = pa.table([*beside.columns, *columns], names=[*beside.column_names, *names])
            start += table.num_rows
            yield self._marked(table)

    def _marked(self, table: pa.Table) -> pa.Table:
        if is_file(self.wish.output):
            return table
        return table.replace_schema_metadata({**(table.schema.metadata or {}), MARK: __version__.encode()})

    def publish(self, outputs: Sequence[Piece]) -> None:
        """Have the scores appear, as a whole, where they were asked for."""
        output, folder = self.wish.output, self.folder / "scores"
        with disk_errors(output):
            if not folder.exists():
                return
            if is_file(output):
                done = folder / outputs[0].path
                if done.exists():
                    if output.exists():
                        done.chmod(stat.S_IMODE(output.stat().st_mode))
                    done.replace(output)
                return
            if output.exists():
                old = self.folder / "old"
                output.rename(old)
                folder.rename(output)
                shutil.rmtree(old)
            else:
                folder.rename(output)


def _remove_others(folder: Path, outputs: Sequence[Piece]) -> None:
    """Remove from finished scores what a run left that was killed in the middle of a file."""
    finished = {folder / piece.path for piece in outputs}
    for entry in folder.rglob("*"):
        if entry.is_file() and entry not in finished:
            entry.unlink()


class _Input:
    """The table's own rows, read again in order, to stand beside the scores."""

    def __init__(self, source: Source, chunk_rows: int) -> None:
        self._source = source
        self._pieces = (piece for _, piece in source.read(source.names, chunk_rows))
        self._start = self._stop = 0
        self._piece: Any = None

    def rows(self, start: int, size: int) -> pa.Table:
        """So many rows from `start` on."""
        found = []
        while size:
            while start >= self._stop:
                self._piece = next(self._pieces)
                self._start, self._stop = self._stop, self._stop + self._piece.num_rows
            taken = min(size, self._stop - start)
            found.append(self._source.as_given(self._piece.slice(start - self._start, taken)))
            start, size = start + taken, size - taken
        return pa.concat_tables(found)
