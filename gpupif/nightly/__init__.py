"""Risk recomputed every night: gates with limits, a record of all runs, and only what changed is read.

`init` looks at a table and writes a configuration; `run` computes what it asks for and answers with a `RunOutcome`;
`history`, `diff` and `verify` look at what is on record. Each takes the file of a configuration, or the `Config` that
`load_config` makes of it. What they give back prints as tables, and ``.to_dict()`` and ``.to_json()`` make plain values
of it. On the command line: ``gpupif nightly``. It needs the extra "nightly".
"""

from importlib.util import find_spec

from ..errors import InputError

if missing := [name for name in ("prometheus_client", "pydantic", "urllib3") if find_spec(name) is None]:
    packages = ", ".join(missing).replace("_", "-")
    raise InputError(f"nightly runs need {packages}, not installed here: pip install 'gpupif[nightly]'.")

from .comparison.run_diff import diff
from .configuration.config import Config, load_config
from .configuration.new_config import init
from .nightly_run import run
from .record.run_history import history
from .record.verification import verify
from .run_outcome import RunOutcome

__all__ = ["Config", "RunOutcome", "diff", "history", "init", "load_config", "run", "verify"]
