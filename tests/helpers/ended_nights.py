"""Nightly runs that are told to end (SIGTERM), again and again, and what each leaves and says.

`python ended_nights.py FOLDER lock|random RUNS SEED`: each run is the command line in a copy of this process. With
`lock`, the signal comes while the main thread holds the lock of llvmlite: at RUNS acquisitions, spread over the whole
run. With `random`, it comes at RUNS random moments. Prints a JSON document: `seen`, for each run its exit code, whether
the signal was sent, the last line of standard error and the status of the run on record; `problems`, what is wrong with
the state afterwards.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import llvmlite.binding as llvm

# As a script, it finds its neighbours here.
sys.path.append(str(Path(__file__).parent.parent.parent))

# Imported here, for all copies.
import gpupif.nightly.nightly_run
import gpupif.out_of_core.scoring_run
import gpupif.scoring.files  # noqa: F401
from gpupif.cli import main as cli
from gpupif.nightly.configuration.config import load_config
from gpupif.nightly.record.record import Record
from tests.helpers.killed_nights import CONFIGURATION, FILES, look, write_file

# A run that takes longer hangs.
MOST_SECONDS = 50


def run(file, said, moment):
    """Run a night; send SIGTERM at the `moment`-th acquisition of the lock of llvmlite by the main thread.

    Writes the number of acquisitions at the end of what is said.
    """
    count = 0

    def acquired():
        nonlocal count
        # Handlers of signals run in the main thread only.
        if threading.current_thread() is threading.main_thread():
            count += 1
            if count == moment:
                os.kill(os.getpid(), signal.SIGTERM)

    llvm.ffi.register_lock_callback(acquired, lambda: None)
    errors = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(errors, 1)
    os.dup2(errors, 2)
    code = 70
    sys.argv = ["gpupif", "nightly", "run", str(file), "-q"]
    try:
        cli.main()
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        sys.stderr.flush()
        os.write(errors, f"\n{count}".encode())
        os._exit(code)


def in_a_copy(file, said, moment=None, seconds=None):
    """Run a night in a copy of this process; return its exit code, the last line it said and its acquisitions.

    moment: see `run`. seconds: SIGTERM comes so long after the start. The exit code is None if the run hangs.
    """
    child = os.fork()
    if child == 0:
        run(file, said, moment)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGTERM)
    until = time.monotonic() + MOST_SECONDS
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None, "", 0
        time.sleep(0.01)
    text, _, count = said.read_text().rpartition("\n")
    return os.waitstatus_to_exitcode(ended[1]), text.strip().rpartition("\n")[2], int(count or 0)


def main():
    folder, kind, runs, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    draw = random.Random(seed)
    (folder / "table").mkdir()
    for number in range(FILES):
        write_file(folder / "table", number, 0)
    file, said = folder / "risk.toml", folder / "said.txt"
    file.write_text(CONFIGURATION)
    state = load_config(file).resolve("gpupif-nightly")
    # The first one compiles in a process of its own: this process must not hold kernels that its copies are to load.
    subprocess.run([sys.executable, "-m", "gpupif", "nightly", "run", str(file), "-q"], check=True)
    started = time.perf_counter()
    code, _, acquisitions = in_a_copy(file, said)
    assert code == 0, said.read_text()
    duration = time.perf_counter() - started
    with Record.open(state) as record:
        good = 2, record.run(2)
    seen, problems = [], []
    for turn in range(runs):
        moment = 1 + turn * acquisitions // runs if kind == "lock" else None
        code, line, count = in_a_copy(file, said, moment, None if moment else draw.random() * duration)
        problems += [f"run {turn}: {problem}" for problem in look(state, good)]
        with Record.open(state) as record:
            last = max(record.heads(), key=lambda head: head["number"])
        sent = moment is None or count >= moment
        seen.append({"code": code, "sent": sent, "said": line, "run": last["number"], "status": last["status"]})
    print(json.dumps({"seen": seen, "problems": problems}))


if __name__ == "__main__":
    main()
