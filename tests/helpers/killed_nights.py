"""Nightly runs that are killed, again and again, at random moments over the whole run.

`python killed_nights.py FOLDER KILLS SEED`: a table of a few files is made in FOLDER; a run is measured; then so many
runs are killed (SIGKILL), each in a copy of this process, at moments drawn evenly over that time, between which the
table changes now and then. After each the state is looked at by who only reads it. Prints a JSON document of what was
seen: see `main`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

import gpupif
from gpupif.nightly.configuration.config import load_config
from gpupif.nightly.nightly_run import run
from gpupif.nightly.outcome import Status
from gpupif.nightly.record import kept
from gpupif.nightly.record.record import Record
from gpupif.nightly.table.table_state import verify_state

FILES = 4
# Every so many kills one run is let through.
LET_THROUGH = 10
CONFIGURATION = """
[input]
path = "table"
row_key = ["person"]

[score]
columns = ["age", "sex", "illness"]
measures = ["cig", "csf"]

[risk]
quasi_identifiers = ["age", "sex"]
sensitive = ["illness"]

[keep]
scores = "all"
runs = 3

[[gates]]
kind = "pif"
percentile = 95
max = 50

[[gates]]
kind = "k"
min = 1

[tell]
json_file = "outcome.json"
"""


def write_file(folder, number, seed):
    """A file of the table; another seed makes another one of it."""
    draw = np.random.default_rng([number, seed])
    rows = 200
    table = {
        "person": np.arange(rows) + number * rows,
        "age": draw.integers(20, 60, rows),
        "sex": draw.choice(["f", "m"], rows),
        "illness": draw.choice(["flu", "cold", "none", None], rows),
    }
    pd.DataFrame(table).to_parquet(folder / f"part-{number}.parquet", index=False)


def in_a_copy(file, seconds=None):
    """A run in a copy of this process, killed after so many seconds; its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            # What it says is of no interest.
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 2)
            code = run(file).exit_code
        finally:
            os._exit(code)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def look(state, good):
    """What is wrong with a state, sentences; good: the number of the last run that was seen to be good, and itself."""
    problems = verify_state(state)
    with Record.open(state) as record:
        problems += record.problems()
        number, outcome = good
        last = record.last_good()
        if last is None or last.number < number:
            problems.append(f"the last good run is {last}, not {number}")
        # One that was killed when it was on record is good too, and retention may remove the one before it.
        elif (last.number == number or number in record.numbers()) and record.run(number) != outcome:
            problems.append(f"run {number} is not what it was")
        for one in record.runs():
            if one.kept is not None:
                folder = kept.find(state, one.number)
                problems += [f"kept scores of run {one.number} are gone"] if folder is None else []
                problems += [] if folder is None else list(kept.check(folder, one.kept))
    return problems


def figures(outcome):
    """What has to be the same whatever was kept."""
    document = json.loads(json.dumps(outcome.to_dict()))
    for gate in document["gates"]:
        del gate["before"], gate["change"]
    for part in ("summary", "risk"):
        for key in ("stages", "seconds"):
            document[part].pop(key, None)
    columns = [{key: fact for key, fact in column.items() if key != "new_values"} for column in document["columns"]]
    return [columns, *(document[key] for key in ("rows", "distinct_rows", "gates", "summary", "risk"))]


def main():
    """Prints `killed`: how many runs were killed before they ended; `problems`; `different`: runs that were let through
    and whose figures are not those of a run without any state; `statuses`: how often runs ended how, as the record has
    it.
    """
    folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    draw = random.Random(seed)
    table = folder / "table"
    table.mkdir()
    for number in range(FILES):
        write_file(table, number, 0)
    file, fresh = folder / "risk.toml", folder / "fresh.toml"
    file.write_text(CONFIGURATION)
    fresh.write_text(CONFIGURATION.replace("json_file", "markdown"))
    state = load_config(file).resolve("gpupif-nightly")
    # Everything is imported and compiled once, for all copies.
    first = run(file)
    assert first.status is Status.PASSED, first.error
    gpupif.config(progress=False).__enter__()
    started = time.perf_counter()
    assert in_a_copy(file) == 0
    duration = time.perf_counter() - started
    seen = {"killed": 0, "problems": [], "different": [], "seconds": duration}
    with Record.open(state) as record:
        good = 2, record.run(2)
    for kill in range(kills):
        if draw.random() < 0.3:
            write_file(table, draw.randrange(FILES), kill + 1)
        seen["killed"] += in_a_copy(file, draw.random() * duration) == -signal.SIGKILL
        seen["problems"] += [f"kill {kill}: {problem}" for problem in look(state, good)]
        if kill % LET_THROUGH == LET_THROUGH - 1:
            assert in_a_copy(file) == 0
            with Record.open(state) as record:
                good = record.last_good().number, record.last_good()
            run(fresh, overrides=[f"run.state={folder / f'fresh-{kill}'}"])
            with Record.open(folder / f"fresh-{kill}") as record:
                if figures(good[1]) != figures(record.run(1)):
                    seen["different"].append(kill)
            seen["problems"] += [f"run {good[0]}: {problem}" for problem in look(state, good)]
    with Record.open(state) as record:
        heads = record.heads()
    seen["statuses"] = {
        status: sum(head["status"] == status for head in heads) for status in sorted({head["status"] for head in heads})
    }
    seen["left"] = sorted(path.name for path in (state / "scores").iterdir() if path.name.startswith("."))
    seen["temporary"] = [path.name for path in (state / "temporary").iterdir()]
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
