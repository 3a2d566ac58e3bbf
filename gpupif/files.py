"""From a file to a file: in memory where the table fits, else part by part on disk; the scores are the same."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .device import choose_engine, choose_wildcard_engine
from .errors import InputError
from .frames import open_file
from .inputs import find_input
from .job import MISSING, ask, check_word, needed_columns
from .measures import resolve_measures
from .memory import default_limit, resident_bytes
from .progress import Reporter, announce_compilation
from .reading import every_column
from .scoring import score
from .sources import Source, open_source
from .spill.outputs import is_file
from .spill.run import score_source
from .spill.wish import Wish, make_wish
from .writing import check_output, output_names

if TYPE_CHECKING:
    from .engines.base import Engine
    from .result import Scores
    from .stored import StoredScores

# Of a cell: as it is read, and as a code.
READ_BYTES = 6
KEY_WORDS = 2


def score_file(
    path: Path,
    output: Path,
    measures: list[str],
    question: dict[str, Any],
    device: str,
    sep: str | None,
    options: dict[str, Any],
    visible: bool | None,
) -> Scores | StoredScores:
    """Score a file and write the scores to another.

    question: arguments of `score`; options: those that go with its `output`. It is done in memory where the output is
    one file, none of memory_limit, temp, rows_per_file and resume is given, and the table fits.
    """
    wildcard = question["missing"] == "wildcard"
    check_word("missing", question["missing"], MISSING)
    check_word("dtype", question["dtype"], ("float64", "float32"))
    wanted = resolve_measures(measures)
    wish = make_wish(output, **options)
    if is_file(output):
        check_output(output, wish.overwrite or wish.resume, find_input(path, sep).places)
    engine = choose_wildcard_engine(device) if wildcard else choose_engine(device)
    given = any(options[name] for name in ("memory_limit", "temp", "rows_per_file", "resume"))
    if is_file(output) and not given:
        source = open_source(path, sep)
        needed = needed_columns(*(question[name] for name in ("columns", "known", "priors", "accuracies")))
        used = source.names if wish.keep_input else needed(source.names) or source.names
        need = memory_needed(source, len(used), len(question["columns"] or source.names), len(wanted))
        if need <= default_limit() - resident_bytes():
            return _score_in_memory(path, measures, question, device, engine, sep, wish, visible)
        if visible is not False and not wildcard:
            print(
                f"gpupif: the table needs about {need / 2**30:.1f} GiB, more than 60 % of the memory that is free: it "
                "is scored part by part, on disk.",
                file=sys.stderr,
            )
    if wildcard:
        raise InputError(
            "missing: 'wildcard' scores a table in memory, which must have room for it, to one file. Name a file as "
            "output without memory_limit=, temp=, rows_per_file= and resume, or use missing='category'."
        )
    asked = partial(ask, measures=wanted, **question)
    with Reporter(visible) as report, announce_compilation(quiet=visible is False):
        return score_source(open_source(path, sep), asked, engine, wish, report)


def memory_needed(source: Source, used: int, targets: int, measures: int) -> int:
    """About how many bytes scoring takes in memory, for a table of so many columns."""
    return source.about_rows() * (READ_BYTES * used + 40 * KEY_WORDS + 48 + 8 * targets * measures)


def _score_in_memory(
    path: Path,
    measures: list[str],
    question: dict[str, Any],
    device: str,
    engine: Engine,
    sep: str | None,
    wish: Wish,
    visible: bool | None,
) -> Scores:
    needed = needed_columns(*(question[name] for name in ("columns", "known", "priors", "accuracies")))
    with Reporter(visible) as report:
        report.stage("read", None, "rows")
        frame = open_file(path, every_column if wish.keep_input else needed, sep, engine.frames)
    names = [name for name in frame.names if name not in frame.index_names]
    output_names(measures, list(dict.fromkeys(question["columns"] or names)), frame.names if wish.keep_input else [])
    scores = score(frame, measures, **question, device=device, progress=visible)
    started = time.perf_counter()
    with Reporter(visible) as report:
        report.stage("write", scores.rows, "rows")
        scores.write(wish.output, wish.keep_input, wish.overwrite, report.advance)
    scores.seconds["write"] = time.perf_counter() - started
    return scores
