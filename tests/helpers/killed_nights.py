"""Nightly runs that are killed, each just before another of the changes that a run makes on the disk.

`python killed_nights.py FOLDER`: a table of a few files is made in FOLDER. The first run is killed (SIGKILL) before its
first change on the disk, the next one before its second, and so on until a run gets through; between them the table
changes now and then. After each the state is looked at by who only reads it. Prints a JSON document of what was seen:
see `main`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import gpupif
from gpupif.nightly.configuration.config import load_config
from gpupif.nightly.exit_codes import Status
from gpupif.nightly.nightly_run import run
from gpupif.nightly.record import record as records
from gpupif.nightly.record.kept_scores import KeptFolder, check
from gpupif.nightly.record.record import Record
from gpupif.nightly.table.kept_table import verify_state

# As a script, it finds its neighbours here.
sys.path.append(str(Path(__file__).parent.parent.parent))

from tests.helpers.dying import die_at, in_a_copy

FILES = 4
# After every so many kills one run is let through.
LET_THROUGH = 10
# More changes than a run makes.
MOST_KILLS = 200
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


def night(file, moment=""):
    """Return how a run in a copy of this process ends: killed just before a change on the disk, or by its exit code."""

    def run_it():
        # What it says is of no interest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        kill_at_commits(die_at(moment, signal.SIGKILL))
        sys.exit(run(file).exit_code)

    return in_a_copy(run_it)


def kill_at_commits(change):
    """Have each commit to a record be a change on the disk."""

    def connect(file, mode, real=records._connect):
        connection = real(file, mode)
        connection.set_trace_callback(lambda statement: change() if statement == "COMMIT" else None)
        return connection

    records._connect = connect


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
        elif [run for run in record.runs() if run.number == number] not in ([], [outcome]):
            problems.append(f"run {number} is not what it was")
        for one in record.runs():
            if one.kept is not None:
                folder = KeptFolder(state, one.number).find()
                problems += [f"kept scores of run {one.number} are gone"] if folder is None else []
                problems += [] if folder is None else list(check(folder, one.kept))
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
    """Prints `codes`: how each run ended; `problems`; `different`: runs that were let through and whose figures are not
    those of a run without any state; `statuses`: how often runs ended how, as the record has it.
    """
    folder = Path(sys.argv[1])
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
    assert night(file) == 0
    seen = {"codes": [], "problems": [], "different": []}
    with Record.open(state) as record:
        good = 2, record.run(2)
    for kill in range(1, MOST_KILLS):
        if kill % 3 == 0:
            write_file(table, kill % FILES, kill)
        seen["codes"].append(night(file, str(kill)))
        seen["problems"] += [f"kill {kill}: {problem}" for problem in look(state, good)]
        if seen["codes"][-1] == 0:
            break
        if kill % LET_THROUGH == 0:
            assert night(file) == 0
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
