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

# What is not written has a name all the same, by which a run knows its files.
NOTHING_WRITTEN = Path("summary.parquet")


class PopulationFiles(NamedTuple):
    """Files of a population, and what is to be done with rows that it lacks: "error" or "count"."""

    source: Source
    lacks: str


@dataclass(frozen=True)
class OutputOptions:
    """The place and the way in which scores are written: see `gpupif.score_files` and `gpupif.config`.

    questions: what else is to be found of them than their summary, while they are made.
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
        """Check what `score_files` says of its output, and add what `gpupif.config` says; raises InputError.

        selection: cells that are to be written in place of all scores; None: all scores. summary_only: no output, only
        what the scores come to.
        """
        here = resources()
        if summary_only:
            _check_nothing_written(output, rows_per_file, resume, overwrite, keep_input, selection)
            return cls(NOTHING_WRITTEN, here.memory, here.temp, summary_only=True)
        if not isinstance(output, str | os.PathLike) or not str(output):
            raise InputError(f"output: expected the name of a file or folder for the scores, got {output!r}.")
        scored_column = Path(output)
        if rows_per_file is not None:
            rows_per_file = whole_number("rows_per_file", rows_per_file, "rows")
            if is_file(scored_column):
                raise InputError(
                    f"rows_per_file: {scored_column} is a single file. Name a folder as output, or leave it out."
                )
        if selection is not None:
            _check_cells(scored_column, rows_per_file, keep_input)
        given = (rows_per_file, bool(resume), bool(overwrite), bool(keep_input))
        return cls(scored_column, here.memory, here.temp, *given, selection)

    @property
    def all_scores(self) -> bool:
        """Return whether the scores of all cells are written."""
        return self.selection is None and not self.summary_only

    def within(self, folder: Path) -> OutputOptions:
        """The same with output and temporary files in a folder."""
        return replace(self, output=folder / self.output.name, temp=None)


def _check_nothing_written(
    output: Any,
    rows_per_file: Any,
    resume: bool,
    overwrite: bool,
    keep_input: bool,
    selection: Selection | None,
) -> None:
    """Raise InputError for an output where there is to be none, or for its options."""
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
    """Raise InputError for an output of cells that is no file, or for options of an output of all scores."""
    if not is_file(output):
        raise InputError(
            f"output: cells (where=, top=) are written to one file: expected a name ending in "
            f"{', '.join(WRITTEN_ENDINGS)}, got {output}."
        )
    if rows_per_file is not None or keep_input:
        name = "keep_input" if rows_per_file is None else "rows_per_file"
        raise InputError(f"{name}: goes with the scores of all cells, not with where= and top=. Leave it out.")
