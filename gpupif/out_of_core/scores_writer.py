"""The writer of score files, or of a file of selected cells, which are published when all are complete."""

from __future__ import annotations

import contextlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..attack.request import ScoreRequest
from ..io.base import Source
from ..io.checkpoints import identity, publish
from ..io.file_errors import ELSEWHERE, disk_errors
from ..io.formats import PARQUET, written_format
from ..io.row_group import Multiple, RowGroup
from ..io.score_files import ScoreFile, is_file
from ..io.write import attacker_names, write_groups, write_tables
from ..results.backing import ScoresDescription
from ..results.cell_selection import CellQuery, ScoredRows
from ..results.cell_table import CellLayout, LocalCellSource
from ..results.provenance import in_one_file, to_metadata
from ..utils.private_folder import private_folder
from ..utils.progress import Reporter
from .attacker_run import JointScores
from .chunk_readers import RowReader, prefetched
from .memory_budget import Budget
from .output_options import OutputOptions
from .table_chunks import TableChunks

# Arrays (scored columns, rows), by output.
Scores = dict[str, Any]
# Returns tables of selected cells. It takes the scores of all chunks.
Search = Callable[[Iterator[Scores], Reporter], Iterator[pa.Table]]


@dataclass(eq=False)
class ScoreWriter:
    """The writer of score files.

    The files are written to the folder `scores` in `folder`; each appears whole or not at all.
    source: Source. The table in files.
    request: ScoreRequest. The request.
    options: OutputOptions. The place and form of the scores.
    folder: Path. The working folder of the run.
    budget: Budget. The memory for reading the table again.
    report: Reporter. It shows the progress.
    """

    source: Source
    request: ScoreRequest
    options: OutputOptions
    folder: Path
    budget: Budget
    report: Reporter

    def write(
        self,
        joint_scores: JointScores,
        sizes: Sequence[int],
        outputs: Sequence[ScoreFile],
        describe: Callable[[bool], ScoresDescription],
        search: Search | None = None,
    ) -> None:
        """Write the score files that do not exist yet.

        sizes: list of int. The number of rows of each chunk.
        describe: function that returns the description for a file, with or without summaries.
        search: function that returns tables of the cells to write in place of all scores. Default: None.
        """
        folder = self.folder / "scores"
        self._describe = describe
        with disk_errors(folder, ELSEWHERE):
            private_folder(folder)
            joint_scores.make_folders()
        if self.options.summary_only:
            self.report.stage("look through", sum(sizes), "rows")
            for size, _ in zip(sizes, joint_scores.chunks(0, len(sizes), 0), strict=True):
                self.report.advance(size)
            return
        _remove_others(folder, outputs)
        left = [score_file for score_file in outputs if not (folder / score_file.path).exists()]
        self.report.stage("write", sum(sizes), "rows")
        if left:
            self.report.advance(_rows_of(outputs) - _rows_of(left))
            for run in _runs(left):
                self._write_run(joint_scores, sizes, run, outputs[-1], search)

    def _write_run(
        self,
        joint_scores: JointScores,
        sizes: Sequence[int],
        run: Sequence[ScoreFile],
        final: ScoreFile,
        search: Search | None,
    ) -> None:
        """Write neighbouring score files; each chunk is written while the next chunk is made.

        final: ScoreFile. The last file of all, which describes all scores.
        """
        ends = list(accumulate(sizes))
        first = bisect_right(ends, run[0].start, hi=len(sizes) - 1)
        last = bisect_left(ends, run[-1].stop, lo=first, hi=len(sizes) - 1) + 1
        # Columns in the names of folders are not repeated in files whose folders have these names too.
        in_folders = not is_file(self.options.output) and self.options.rows_per_file is None
        held = self.source.folder_columns if in_folders else ()
        given = _Input(self.source, self.budget, held) if self.options.keep_input else None
        with (
            contextlib.closing(joint_scores.chunks(first, last, run[0].start)) as made,
            contextlib.closing(prefetched(made)) as chunks,
        ):
            if search is not None:
                file, tables = self.folder / "scores" / run[0].path, search(chunks, self.report)
                write_tables(tables, file, describe=self._said_by_all, private=True)
                return
            rows = RowReader(chunks, ends[first] - sizes[first], _rows_in, _some_rows)
            for score_file in run:
                file = self.folder / "scores" / score_file.path
                with disk_errors(file, ELSEWHERE):
                    private_folder(file.parent)
                groups = ([group] for group in self._groups(joint_scores, rows, score_file, given))
                # The last file is described when all scores are known.
                describe = self._said_by_all if score_file == final else lambda: self._said_by_each
                write_groups(groups, file, self.report.advance, describe=describe, private=True)

    def _groups(
        self, joint_scores: JointScores, rows: RowReader[Scores], score_file: ScoreFile, given: _Input | None
    ) -> Iterator[RowGroup]:
        """Yield the rows of a score file, chunk by chunk."""
        names = attacker_names(self.request.output_names, self.request.scored_columns, [])
        if score_file.start == score_file.stop:
            nothing = [pa.array(column) for column in joint_scores.nothing()]
            yield RowGroup.from_table(pa.table(nothing, names)).preceded_by(None if given is None else given.nothing())
        start = score_file.start
        multiples = joint_scores.multiples()
        for arrays in rows.between(score_file.start, score_file.stop):
            columns = _columns(arrays, multiples)
            types = [pa.float64() if isinstance(one, Multiple) else one.type for one in columns]
            size = _rows_in(arrays)
            scores = RowGroup(pa.schema(zip(names, types, strict=True)), columns)
            yield scores.preceded_by(None if given is None else given.rows(start, size))
            start += size

    def _said_by_all(self) -> Mapping[bytes, bytes]:
        """Return the metadata of the only score file, or of the last file of a folder: a description of all scores."""
        # Only Parquet has its metadata after the scores, when a summary can be made of them.
        return to_metadata(self._describe(written_format(self.options.output) is PARQUET))

    @cached_property
    def _said_by_each(self) -> Mapping[bytes, bytes]:
        """The metadata of every other score file of a folder."""
        return to_metadata(in_one_file(self._describe(False)))

    def publish(self, outputs: Sequence[ScoreFile], known: list[int]) -> None:
        """Move the scores to the output, unless the output has them already. known: identity of the scores."""
        output = self.options.output
        if not (output.exists() and identity(output) == known):
            publish(self.staged(outputs), output)

    def staged(self, outputs: Sequence[ScoreFile]) -> Path:
        """Return the file or folder to publish."""
        folder = self.folder / "scores"
        return folder / outputs[0].path if is_file(self.options.output) else folder


def select_cells(
    query: CellQuery, chunks: TableChunks, places: Sequence[int], scores: Iterator[Scores], report: Reporter
) -> Iterator[pa.Table]:
    """Yield tables of the selected cells, such as the riskiest ones, while chunks of scores are made.

    `results/riskiest.py` keeps the riskiest cells within bounded memory.
    query: CellQuery. The selection.
    chunks: TableChunks. The rows of the table.
    places: list of int. The numbers of the scored columns in the table.
    scores: the scores of each chunk, by output.
    report: Reporter. It shows the progress.
    """
    columns = [chunks.columns[place] for place in places]
    layout = CellLayout.for_columns([column.name for column in columns], query.types, columns)

    def scored_rows(_: Sequence[str]) -> Iterator[ScoredRows]:
        start = 0
        for number, (size, arrays) in enumerate(zip(chunks.sizes, scores, strict=True)):
            codes = chunks.some_codes(number, places)
            yield ScoredRows(start, arrays, codes.__getitem__)
            start += size
            report.advance(size)

    return LocalCellSource(query, layout, scored_rows).tables()


def _columns(arrays: Scores, multiples: Mapping[str, tuple[str, Sequence[float]]]) -> list[pa.Array | Multiple]:
    """Return scores as columns.

    arrays: by output arrays (scored columns, rows).
    multiples: by output the output and factors that give it. Such columns are written as multiples.
    """
    columns: list[pa.Array | Multiple] = []
    first: dict[str, int] = {}
    for output, array in arrays.items():
        first[output] = len(columns)
        of, factors = multiples.get(output, ("", ()))
        if of in first and all(factors):
            columns += [Multiple(first[of] + place, factor) for place, factor in enumerate(factors)]
        else:
            columns += map(pa.array, array)
    return columns


def _rows_in(scores: Scores) -> int:
    return int(next(iter(scores.values())).shape[1])


def _some_rows(scores: Scores, rows: slice) -> Scores:
    return {name: array[:, rows] for name, array in scores.items()}


def _rows_of(score_files: Sequence[ScoreFile]) -> int:
    return sum(score_file.stop - score_file.start for score_file in score_files)


def _runs(score_files: Sequence[ScoreFile]) -> list[list[ScoreFile]]:
    """Return runs of neighbouring score files: after a kill some files between them exist already."""
    runs: list[list[ScoreFile]] = []
    for score_file in score_files:
        if not runs or runs[-1][-1].stop != score_file.start:
            runs.append([])
        runs[-1].append(score_file)
    return runs


def _remove_others(folder: Path, outputs: Sequence[ScoreFile]) -> None:
    """Delete the files that a killed run left unfinished among the scores."""
    finished = {folder / score_file.path for score_file in outputs}
    for entry in folder.rglob("*"):
        if entry.is_file() and entry not in finished:
            entry.unlink()


class _Input:
    """The rows of the table, read again in order to be written beside their scores."""

    def __init__(self, source: Source, budget: Budget, left_out: Sequence[str]) -> None:
        self._source = source
        self._names = [name for name in source.names if name not in left_out]
        read = source.read(self._names, budget.chunk_rows, budget.values_bytes())
        self._rows = RowReader[pa.Table](
            (chunk for _, chunk in read), 0, len, lambda chunk, rows: chunk.slice(rows.start, rows.stop - rows.start)
        )

    def nothing(self) -> pa.Table:
        """Return the columns of the table, without rows."""
        return self._source.nothing().select(self._names)

    def rows(self, start: int, size: int) -> pa.Table:
        """Return `size` rows from `start` on."""
        return pa.concat_tables(self._source.as_given(chunk) for chunk in self._rows.between(start, start + size))
