"""Options of a run from files to files: its output, and the files of the population."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError
from ..io.base import Source
from ..io.formats import WRITTEN_ENDINGS
from ..io.score_files import is_file
from ..results.cell_selection import Selection
from ..results.score_distribution import ScoreQuestions
from ..utils.config import resources
from ..utils.validation import whole_number

# Name of an output that is not written; the run needs one to know its files by.
NOTHING_WRITTEN = Path("summary.parquet")


class PopulationFiles(NamedTuple):
    """The files of a population, and the treatment of rows that it lacks: "error" or "count"."""

    source: Source
    lacks: str


@dataclass(frozen=True)
class OutputOptions:
    """The place and form of the scores; see `gpupif.score_files` and `gpupif.config`.

    output: Path. The file or folder of the scores.
    memory_limit: int. Bytes that the process may take.
    temp: Path. The folder for spill files. Default None: beside the output.
    rows_per_file: int. The number of rows of each score file. Default None: one score file for each file of the table.
    resume: bool. Whether to resume a killed run, and to keep the files of this run if it is killed. Default False.
    overwrite: bool. Whether to replace an output that exists. Default False.
    keep_input: bool. Whether to write the columns of the table too. Default False.
    selection: Selection. The cells to write in place of all scores. Default None: all scores.
    summary_only: bool. Whether to make summaries only, without output. Default False.
    questions: ScoreQuestions. Questions about the scores besides the summary. Default: none.
    """

    output: Path
    memory_limit: int
    temp: Path | None = None
    rows_per_file: int | None = None
    resume: bool = False
    overwrite: bool = False
    keep_input: bool = False
    selection: Selection | None = None
    summary_only: bool = False
    questions: ScoreQuestions = field(default_factory=ScoreQuestions)

    @classmethod
    def from_arguments(
        cls,
        output: Any,
        rows_per_file: Any = None,
        resume: bool = False,
        overwrite: bool = False,
        keep_input: bool = False,
        selection: Selection | None = None,
        summary_only: bool = False,
    ) -> OutputOptions:
        """Check the arguments of `score_files` about its output, and add the settings of `gpupif.config`.

        selection: the cells to write in place of all scores. None: all scores.
        summary_only: bool. Whether only summaries are made, without output.

        Raises InputError.
        """
        here = resources()
        if summary_only:
            _check_nothing_written(output, rows_per_file, resume, overwrite, keep_input, selection)
            return cls(NOTHING_WRITTEN, here.memory, here.temp, summary_only=True)
        if not isinstance(output, str | os.PathLike) or not str(output):
            raise InputError(f"output: expected the name of a file or folder for the scores, got {output!r}.")
        scores_path = Path(output)
        if selection is not None:
            _check_cells(scores_path, rows_per_file, keep_input)
        if rows_per_file is not None:
            rows_per_file = whole_number("rows_per_file", rows_per_file, "rows")
            if is_file(scores_path):
                raise InputError(
                    f"rows_per_file: {scores_path} is a single file. Name a folder as output, or leave it out."
                )
        given = (rows_per_file, bool(resume), bool(overwrite), bool(keep_input))
        return cls(scores_path, here.memory, here.temp, *given, selection)

    @property
    def all_scores(self) -> bool:
        """True if the scores of all cells are written."""
        return self.selection is None and not self.summary_only

    def within(self, folder: Path) -> OutputOptions:
        """Return these options with output and temporary files in a folder."""
        return replace(self, output=folder / self.output.name, temp=None)


def _check_nothing_written(
    output: Any,
    rows_per_file: Any,
    resume: bool,
    overwrite: bool,
    keep_input: bool,
    selection: Selection | None,
) -> None:
    """Raise InputError for an output, or options of an output, if nothing is written."""
    options = {
        "output": output,
        "rows_per_file": rows_per_file,
        "resume": resume,
        "overwrite": overwrite,
        "keep_input": keep_input,
        "where": None if selection is None else selection.text,
        "top": None if selection is None else selection.top,
    }
    for name, value in options.items():
        if value is not None and value is not False:
            raise InputError(
                f"{name}: goes with scores that are written, not with summary_only. Leave one of them out."
            )


def _check_cells(output: Path, rows_per_file: int | None, keep_input: bool) -> None:
    """Raise InputError if selected cells are not written to one file, or with options of an output of all scores."""
    if rows_per_file is not None or keep_input:
        name = "keep_input" if rows_per_file is None else "rows_per_file"
        raise InputError(f"{name}: goes with the scores of all cells, not with where= and top=. Leave it out.")
    if not is_file(output):
        raise InputError(
            f"output: cells (where=, top=) are written to one file: expected a name ending in "
            f"{', '.join(WRITTEN_ENDINGS)}, got {output}."
        )
