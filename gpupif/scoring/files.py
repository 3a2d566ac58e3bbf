"""From a file to a file: in memory where the table fits, else part by part on disk; the scores are the same."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..attack.known_subsets import AnyKnown, any_known_of, ask_any
from ..attack.request import ask, check_missing, check_word, needed_columns
from ..attack.worst_mean import FOLDS, folded_names
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
from .any_known import refuse_with_any_known
from .score import score

if TYPE_CHECKING:
    from ..attack.request import Question
    from ..engines.base import Engine
    from ..results.attackers import AttackerScores
    from ..results.scores import Scores
    from ..results.stored import StoredAttackerScores, StoredScores

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
) -> Scores | StoredScores | AttackerScores | StoredAttackerScores:
    """Score a file and write the scores to another.

    question: arguments of `score`; options: those that go with its `output`. It is done in memory where the output is
    one file, none of memory_limit, temp, rows_per_file and resume is given, and the table fits.
    """
    wildcard = check_missing(question["missing"], question["population"])
    check_word("dtype", question["dtype"], ("float64", "float32"))
    check_word("population_lacks", question["population_lacks"], ("error", "count"))
    wanted = resolve_measures(measures)
    wish = make_wish(output, **options)
    any_known = any_known_of(question)
    if any_known is not None:
        refuse_with_any_known(**{name: question[name] for name in ("weights", "attackers", "population")})
        refuse_with_any_known(**{"missing='wildcard'": wildcard})
    people = open_people(question["population"], question["population_lacks"])
    if is_file(output):
        places = [*find_input(path, sep).places, *([] if people is None else people.source.found.places)]
        check_output(output, wish.overwrite or wish.resume, places)
    engine = choose_engine(device)
    given = any(options[name] for name in ("memory_limit", "temp", "rows_per_file", "resume"))
    if is_file(output) and not given:
        source = open_source(path, sep)
        needed = _needed(question, any_known)
        used = source.names if wish.keep_input else needed(source.names) or source.names
        each = (len(wanted) + (people is not None)) * len(question["attackers"] or [None])
        if any_known is not None:
            each *= len(FOLDS)
        need = memory_needed(source, len(used), len(question["columns"] or source.names), each)
        if people is not None:
            need += memory_needed(people.source, len(used), 0, 0)
        if need <= default_limit() - resident_bytes():
            return _score_in_memory(path, measures, question, any_known, device, engine, sep, wish, visible)
        if visible is not False:
            print(
                f"gpupif: the table needs about {need / 2**30:.1f} GiB, more than 60 % of the memory that is free: it "
                "is scored part by part, on disk.",
                file=sys.stderr,
            )
    about: dict[str, Any] = {name: question[name] for name in (*NEEDED, "missing", "dtype")}
    asked: Callable[..., Question] = partial(ask, measures=wanted, **about)
    if any_known is not None:
        del about["known"]
        asked = partial(ask_any, any_known, measures=wanted, **about)
    with Reporter(visible) as report, announce_compilation(quiet=visible is False):
        return score_source(open_source(path, sep), asked, engine, wish, report, people)


def _needed(question: dict[str, Any], any_known: AnyKnown | None) -> Pick:
    """The columns of a file that a question needs."""
    given = {name: question[name] for name in NEEDED}
    if any_known is None:
        return needed_columns(**given)
    return any_known.picking(needed_columns(**{**given, "known": any_known.among}))


def memory_needed(source: Source, used: int, targets: int, measures: int) -> int:
    """About how many bytes scoring takes in memory, for a table of so many columns."""
    return source.about_rows() * (READ_BYTES * used + 40 * KEY_WORDS + 48 + 8 * targets * measures)


def _score_in_memory(
    path: Path,
    measures: list[str],
    question: dict[str, Any],
    any_known: AnyKnown | None,
    device: str,
    engine: Engine,
    sep: str | None,
    wish: Wish,
    visible: bool | None,
) -> Scores | AttackerScores:
    needed = _needed(question, any_known)
    with Reporter(visible) as report:
        report.stage("read", None, "rows")
        frame = open_file(path, every_column if wish.keep_input else needed, sep, engine.frames)
    names = [name for name in frame.names if name not in (*frame.index_names, question["weights"])]
    attackers = None if question["attackers"] is None else list(question["attackers"])
    targets = list(dict.fromkeys(question["columns"] or names))
    scored = measures if any_known is None else folded_names(measures)
    scored = [*scored, *([] if question["population"] is None else [POPULATION_SIZE.name])]
    attacker_names(attackers, scored, targets, frame.names if wish.keep_input else [])
    scores: Scores | AttackerScores = score(frame, measures, **question, device=device, progress=visible)
    started = time.perf_counter()
    with Reporter(visible) as report:
        report.stage("write", scores.rows, "rows")
        scores.write(wish.output, wish.keep_input, wish.overwrite, report.advance)
    scores.seconds["write"] = time.perf_counter() - started
    return scores
