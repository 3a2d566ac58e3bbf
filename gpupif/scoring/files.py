"""From a file to a file: in memory where the table fits, else part by part on disk; the scores are the same."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..attack.known_subsets import KNOWN, as_attackers, known_of, outputs_of
from ..attack.request import MISSING, ask, check_word, needed_columns
from ..engines.choose import choose_engine
from ..frames.open import open_file
from ..io.base import Source
from ..io.common import Pick, every_column
from ..io.paths import find_input
from ..io.scan import open_source
from ..io.score_files import is_file
from ..io.write import attacker_names, check_output
from ..measures import POPULATION_SIZE, resolve_measures
from ..out_of_core.options import Wish, make_wish
from ..out_of_core.run import open_people, score_source
from ..utils.memory import default_limit, resident_bytes
from ..utils.progress import Reporter, announce_compilation
from .score import score

if TYPE_CHECKING:
    from ..attack.request import Question
    from ..engines.base import Engine
    from ..results.scores import Scores

# Arguments of `score` that name columns.
NEEDED = ("columns", "known", "priors", "accuracies", "weights", "attackers", "distances")
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
) -> Scores:
    """Score a file and write the scores to another.

    question: arguments of `score`; options: those that go with its `output`. It is done in memory where the output is
    one file, none of memory_limit, temp, rows_per_file and resume is given, and the table fits.
    """
    check_word("missing", question["missing"], MISSING)
    check_word("dtype", question["dtype"], ("float64", "float32"))
    check_word("population_lacks", question["population_lacks"], ("error", "count"))
    wanted = resolve_measures(measures)
    wish = make_wish(output, **options)
    given = {name: question[name] for name in NEEDED}
    about: dict[str, Any] = given | {"known": known_of(*(question.get(name, other) for name, other in KNOWN))}
    needed = needed_columns(**about)
    measured = [*wanted, *([] if question["population"] is None else [POPULATION_SIZE])]
    outputs = outputs_of(as_attackers(about["attackers"]), about["known"], [measure.name for measure in measured])
    people = open_people(question["population"], question["population_lacks"])
    if is_file(output):
        places = [*find_input(path, sep).places, *([] if people is None else people.source.found.places)]
        check_output(output, wish.overwrite or wish.resume, places)
    engine = choose_engine(device)
    in_parts = any(options[name] for name in ("memory_limit", "temp", "rows_per_file", "resume"))
    if is_file(output) and not in_parts:
        source = open_source(path, sep)
        used = source.names if wish.keep_input else needed(source.names) or source.names
        each = sum(map(len, outputs.values()))
        need = memory_needed(source, len(used), len(question["columns"] or source.names), each)
        if people is not None:
            need += memory_needed(people.source, len(used), 0, 0)
        if need <= default_limit() - resident_bytes():
            return _score_in_memory(path, measures, question, needed, device, engine, sep, wish, visible)
        if visible is not False:
            print(
                f"gpupif: the table needs about {need / 2**30:.1f} GiB, more than 60 % of the memory that is free: it "
                "is scored part by part, on disk.",
                file=sys.stderr,
            )
    asked: Callable[..., Question] = partial(
        ask, measures=wanted, missing=question["missing"], dtype=question["dtype"], **about
    )
    with Reporter(visible) as report, announce_compilation(quiet=visible is False):
        return score_source(open_source(path, sep), asked, engine, wish, report, people)


def memory_needed(source: Source, used: int, targets: int, measures: int) -> int:
    """About how many bytes scoring takes in memory, for a table of so many columns."""
    return source.about_rows() * (READ_BYTES * used + 40 * KEY_WORDS + 48 + 8 * targets * measures)


def _score_in_memory(
    path: Path,
    measures: list[str],
    question: dict[str, Any],
    needed: Pick,
    device: str,
    engine: Engine,
    sep: str | None,
    wish: Wish,
    visible: bool | None,
) -> Scores:
    with Reporter(visible) as report:
        report.stage("read", None, "rows")
        frame = open_file(path, every_column if wish.keep_input else needed, sep, engine.frames)
    names = [name for name in frame.names if name not in (*frame.index_names, question["weights"])]
    targets = list(dict.fromkeys(question["columns"] or names))
    scored = [*measures, *([] if question["population"] is None else [POPULATION_SIZE.name])]
    known = known_of(*(question.get(name, other) for name, other in KNOWN))
    outputs = outputs_of(as_attackers(question["attackers"]), known, scored)
    attacker_names(outputs, targets, frame.names if wish.keep_input else [])
    scores = score(frame, measures, **question, device=device, progress=visible)
    started = time.perf_counter()
    with Reporter(visible) as report:
        report.stage("write", scores.rows, "rows")
        scores.write(wish.output, wish.keep_input, wish.overwrite, report.advance)
    scores.seconds["write"] = time.perf_counter() - started
    return scores
