"""The command line, run again and again in processes that send themselves a signal at some moment.

`python dying.py SIGNAL CHUNK_ROWS PART_ROWS MOMENTS ARGUMENT...`: at the first of the moments (a comma between two) the
first run gets the signal, at the second the next run, and so on, until one gets through; the last gets none. A moment
counts the steps that change anything on the disk. Prints the exit code of each run, negative for a signal.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import warnings
from pathlib import Path

from gpupif.cli import main as cli
from gpupif.io import checkpoints as store
from gpupif.io import ipc_batches
from gpupif.out_of_core import encode
from gpupif.out_of_core import part_scoring as parts
from gpupif.out_of_core import shuffle as cut

# As a script, it finds its neighbours here.
sys.path.append(str(Path(__file__).parent.parent.parent))

from tests.helpers.pieces import in_pieces


def run(moment: int | None, number: int, arguments: list[str]) -> None:
    count = itertools.count(1)

    def dying(function):
        def call(*given, **named):
            if next(count) == moment:
                os.kill(os.getpid(), number)
            return function(*given, **named)

        return call

    for module in (encode, cut, parts, ipc_batches):
        for name in ("BatchWriter", "write_batch"):
            if hasattr(module, name):
                setattr(module, name, dying(getattr(module, name)))
    store.Store.mark = dying(store.Store.mark)
    store.Store.close = dying(store.Store.close)
    Path.replace = dying(Path.replace)
    Path.rename = dying(Path.rename)
    # Also of shutil.rmtree.
    for name in ("unlink", "rmdir", "replace"):
        setattr(os, name, dying(getattr(os, name)))
    sys.argv = ["gpupif", *arguments]
    cli.main()


def main() -> None:
    number, chunk_rows, part_rows = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    moments = [int(moment) for moment in sys.argv[4].split(",") if moment]
    with in_pieces(chunk_rows, part_rows):
        for moment in [*moments, None]:
            with warnings.catch_warnings():
                # Python 3.12 and later warn of threads: here of pools that are idle.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                code = 0
                try:
                    run(moment, number, sys.argv[5:])
                except SystemExit as ended:
                    code = ended.code or 0
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            print(code, flush=True)
            if code == 0:
                return


if __name__ == "__main__":
    main()


DYING = [sys.executable, "-P", __file__]


def die(number, moments, *arguments, rows=(37, 60), command="score"):
    """Run a command in pieces, with a signal at each of these moments, then without; exit codes, and output."""
    command = [*DYING, str(int(number)), *map(str, rows), ",".join(map(str, moments)), command, *map(str, arguments)]
    ended = subprocess.run(command, check=True, text=True, capture_output=True)
    return [int(line) for line in ended.stdout.splitlines()], ended.stderr
