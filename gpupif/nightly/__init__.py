"""Risk recomputed every night: gates with limits, a record of all runs, and only what changed is read.

`run` takes the configuration that `init` writes, and answers; `history`, `diff` and `verify` look at what is on record.
"""

from .config import Config, load_config
from .functions import diff, history, verify
from .new_config import init
from .nightly_run import run
from .outcome import RunOutcome

__all__ = ["Config", "RunOutcome", "diff", "history", "init", "load_config", "run", "verify"]
