"""The command line, run again and again in processes that send themselves a signal at some moment.

`python dying.py SIGNAL CHUNK_ROWS PART_ROWS MOMENTS ARGUMENT...`: the first run gets the signal at the first of the
moments (a comma between two), the next run at the second, and so on, until one gets through; the last gets none. A
moment is the number of a change on the disk, counted from the run's start. Or MOMENTS is a word, and every run gets the
signal when it has marked one more step of its checkpoint as done: with `next` at the next change on the disk, with
`mark` when the mark of the step after that is written but not yet in its place. Prints the exit code of each run,
negative for a signal.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import typer.main

from gpupif.cli import main as cli
from gpupif.io import checkpoints as store
from gpupif.io import ipc_batches
from gpupif.out_of_core import encoded_population as population
from gpupif.out_of_core import file_encoding as encode
from gpupif.out_of_core import one_partition_scoring, table_scoring
from gpupif.pipeline import local_graph

# As a script, it finds its neighbours here.
sys.path.append(str(Path(__file__).parent.parent.parent))

from tests.helpers.pieces import in_pieces

# Options that name what a command writes.
OUTPUTS = ("-o", "--record")
# More steps than a run of these small tables has.
MOST_RUNS = 100


def die_at(moment: str, number: int) -> Callable[[], None]:
    """Have this process send itself a signal just before a change on the disk; see MOMENTS above.

    Returns what any other change on the disk has to call first.
    """
    count = itertools.count(1)
    marking: list[str] = []
    marked: list[str] = []
    opened: list[store.Store] = []

    def is_time() -> bool:
        if moment == "next":
            return bool(marked)
        if moment == "mark":
            return bool(marked and marking)
        return str(next(count)) == moment

    def change() -> None:
        if is_time():
            os.kill(os.getpid(), number)

    def dying(function):
        def call(*given, **named):
            change()
            return function(*given, **named)

        return call

    def opening(self, *given, real=store.Store.open, **named):
        opened.append(self)
        return real(self, *given, **named)

    def mark(self, step, facts, real=store.Store.mark):
        # What a treatment asks of a run within the run begins anew after a kill.
        if self is opened[0] and self.done(step) is None:
            marking.append(step)
        real(self, step, facts)
        marked.extend(marking)
        marking.clear()

    for module in (encode, table_scoring, one_partition_scoring, population, local_graph, ipc_batches):
        for name in ("BatchWriter", "write_batch"):
            if hasattr(module, name):
                setattr(module, name, dying(getattr(module, name)))
    local_graph.open_private = dying(local_graph.open_private)
    store.Store.open = opening
    store.Store.mark = mark
    store.Store.close = dying(store.Store.close)
    Path.replace = dying(Path.replace)
    Path.rename = dying(Path.rename)
    # Also of shutil.rmtree.
    for name in ("unlink", "rmdir", "replace"):
        setattr(os, name, dying(getattr(os, name)))
    return change


def in_a_copy(function) -> int:
    """Call a function in a copy of this process; return its exit code, negative for a signal."""
    with warnings.catch_warnings():
        # Python 3.12 and later warn of threads: here of pools that are idle.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 70
        try:
            function()
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_once(arguments: list[str]) -> None:
    """Run the command with its output in another place, so that copies of this process have all imported and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        options = dict(itertools.pairwise(arguments))
        elsewhere = {options[name]: f"{folder}/{Path(options[name]).name}" for name in OUTPUTS if name in options}
        sys.argv = ["gpupif", *(elsewhere.get(argument, argument) for argument in arguments)]
        with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
            cli.main()


def main() -> None:
    number, chunk_rows, partition_rows = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    arguments = sys.argv[5:]
    at_marks = sys.argv[4] in ("next", "mark")
    moments = [sys.argv[4]] * MOST_RUNS if at_marks else [*sys.argv[4].split(","), ""]

    def run(moment: str) -> None:
        die_at(moment, number)
        sys.argv = ["gpupif", *arguments]
        cli.main()

    # The parser of all commands is built once for all copies, too.
    typer.main.get_command = cache(typer.main.get_command)
    with in_pieces(chunk_rows, partition_rows):
        run_once(arguments)
        for moment in moments:
            code = in_a_copy(partial(run, moment))
            print(code, flush=True)
            if code == 0:
                return


if __name__ == "__main__":
    main()


DYING = [sys.executable, "-P", __file__]


def die(number, moments, *arguments, rows=(37, 60), command="score"):
    """Run a command in pieces, with a signal at each of these moments, then without; exit codes, and output."""
    said = moments if isinstance(moments, str) else ",".join(map(str, moments))
    command = [*DYING, str(int(number)), *map(str, rows), said, command, *map(str, arguments)]
    ended = subprocess.run(command, check=True, text=True, capture_output=True)
    return [int(line) for line in ended.stdout.splitlines()], ended.stderr


def die_at_each_mark(moment, *arguments, **options):
    """Kill a run whenever it has finished one more step, at a moment after that (`next` or `mark`), until it is done.

    Fails unless that takes several kills.
    """
    codes, said = die(signal.SIGKILL, moment, *arguments, **options)
    assert codes[-1] == 0, said
    assert set(codes[:-1]) == {-signal.SIGKILL}
    assert len(codes) > 3
