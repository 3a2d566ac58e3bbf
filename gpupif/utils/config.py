"""The settings of all functions: device, memory limit, temporary files, progress, threads and compression.

An option has the value of the innermost `config` block around the call that names the option. Without such a block it
has the value of the process (`set_config`), else of its environment variable, else gpupif chooses.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from ..errors import InputError, OutputError, did_you_mean
from .docs import documented_as
from .memory import default_limit, parse_size
from .validation import whole_number

AUTO = "auto"
DEVICES = (AUTO, "cpu", "cuda")
# The methods by which a GPU finds rows that agree.
GROUPINGS = (AUTO, "cudf", "rotation")
# The codecs of files of scores.
CODECS = (AUTO, "zstd", "lz4", "snappy", "none")
SWITCHES: Mapping[str, bool] = {"1": True, "0": False}
Auto = Literal["auto"]


@dataclass(frozen=True)
class Resources:
    """The values of all options at the place of a call, see `resources`. None or "auto": gpupif chooses.

    memory_limit: bytes. The other fields are the options of `config`.
    """

    device: str = AUTO
    gpu_grouping: str = AUTO
    memory_limit: int | None = None
    temp: Path | None = None
    progress: bool | None = None
    threads: int | None = None
    compression: str = AUTO

    @property
    def memory(self) -> int:
        """The bytes that the process may take: the limit, else the bytes that it has and 60 % of the free memory."""
        return default_limit() if self.memory_limit is None else self.memory_limit


class Block:
    """A context manager that sets options for a ``with`` block: in its thread, and in threads that gpupif starts."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._used = False
        self._tokens: list[Token[Mapping[str, Any]]] = []

    def __enter__(self) -> Resources:
        self._used = True
        self._tokens.append(_blocks.set(MappingProxyType({**_blocks.get(), **self._options})))
        return resources()

    def __exit__(self, *error: object) -> None:
        _blocks.reset(self._tokens.pop())

    def __del__(self) -> None:
        if not self._used:
            warnings.warn(
                "gpupif.config(...) does nothing without `with`; for the whole process there is gpupif.set_config.",
                RuntimeWarning,
                stacklevel=2,
            )


_blocks: ContextVar[Mapping[str, Any]] = ContextVar("gpupif", default=MappingProxyType({}))
_process: Mapping[str, Any] = {}
_changing = threading.Lock()


def config(
    *,
    device: str | None = None,
    gpu_grouping: str | None = None,
    memory_limit: int | str | None = None,
    temp: str | os.PathLike[str] | None = None,
    progress: bool | Auto | None = None,
    threads: int | Auto | None = None,
    compression: str | None = None,
) -> Block:
    """Set device, memory, threads and other settings for a ``with`` block; results do not depend on them.

    The settings hold for every function of gpupif that this thread calls in the block. Blocks in other threads are
    independent. Options that are not named keep their values, so that blocks can be nested. `set_config` sets options
    for the whole process, and an environment variable sets each option. A block overrides both.

    Parameters
    ----------
    device:
        "cpu", "cuda" (all GPUs that work), "cuda:1" (one GPU), or "auto": "cuda" if a GPU can be used, except for
        tables of fewer than 10,000,000 cells. ``Scores.device`` says which device ran, ``gpupif info`` why CUDA cannot
        be used. For a Dask DataFrame, the device of each worker, whatever the size of the table. Default: "auto".
        Environment: GPUPIF_DEVICE.
    gpu_grouping:
        The method by which a GPU finds rows that agree: "cudf" (cuDF hashes their keys), "rotation" (keys are sorted),
        or "auto": "cudf" if cuDF is installed. Two kinds of tables are always sorted: more than 2^31 - 1 rows, and rows
        for a measure that needs the values of a cohort in order (emd, recursive_n). Default: "auto". Environment:
        GPUPIF_GPU_GROUPING.
    memory_limit:
        The memory that the process may take, with the memory that it holds already: a text such as "8GiB", or bytes.
        "auto": the memory that it holds, and 60 % of the free memory. With a limit, tables of files are always read in
        streams. With "auto", tables of files are read in streams if they do not fit. Workers of Dask have their own
        limits. Default: "auto". Environment: GPUPIF_MEMORY_LIMIT.
    temp:
        A folder for temporary files. "auto": the folder of the output, or the system's folder for temporary files if
        there is no output. Default: "auto". Environment: GPUPIF_TEMP.
    progress:
        Whether progress is shown on standard error: True, False, or "auto": if standard error is a terminal. False
        also hides other messages on standard error, except warnings. Default: "auto". Environment: GPUPIF_PROGRESS,
        with 1, 0 or auto.
    threads:
        The number of threads of the CPU. "auto": the number of cores that this process may use. A task of Dask takes
        one thread, or the number that is set in the process of its worker. Default: "auto". Environment:
        GPUPIF_NUM_THREADS.
    compression:
        The codec of files of scores: "zstd" (small), "lz4" (fast), "snappy", "none", or "auto": "zstd" for Parquet,
        "lz4" for Feather. Feather has no "snappy"; CSV is not compressed. Columns that would not get smaller are not
        compressed. Scores of a Dask DataFrame follow the option too, unless `Scores.to_parquet` gets Dask's own option.
        Default: "auto". Environment: GPUPIF_COMPRESSION.

    Returns
    -------
    Block
        A context manager. Its ``with`` statement returns the `Resources` of the block.

    Raises
    ------
    InputError
        Raised at once for a value that an option cannot have, and for ``device="cpu"`` with a method of GPUs.
    OutputError
        Raised at once for a folder for temporary files that does not exist or cannot be written to.

    Examples
    --------
    >>> import gpupif
    >>> with gpupif.config(device="cpu", memory_limit="8GiB") as resources:
    ...     resources.device, resources.memory_limit
    ('cpu', 8589934592)

    """
    return Block(_checked(locals()))


@documented_as(config)
def set_config(
    *,
    device: str | None = None,
    gpu_grouping: str | None = None,
    memory_limit: int | str | None = None,
    temp: str | os.PathLike[str] | None = None,
    progress: bool | Auto | None = None,
    threads: int | Auto | None = None,
    compression: str | None = None,
) -> Resources:
    """Set device, memory, threads and other settings for the whole process; `config` sets them for a block.

    Returns
    -------
    Resources
        The values of all options after the change. Without arguments nothing changes.

    Raises
    ------
    InputError, OutputError
        As `gpupif.config`; no option is changed then.

    """
    global _process
    options = _checked(locals())
    with _changing:
        _process = {**_process, **options}
    return resources()


def resources() -> Resources:
    """Return the values of all options here; raises InputError or OutputError for a useless environment variable."""
    given = {**_process, **_blocks.get()}
    variables = {option: name for option, (name, _) in OPTIONS.items() if option not in given and name in os.environ}
    read = {option: OPTIONS[option][1](name, os.environ[name]) for option, name in variables.items()}
    return Resources(**read, **given)


def split_device(device: Any, argument: str = "device") -> tuple[str, str, str]:
    """Return the parts of a word for a device, such as "cuda", ":" and "1"; raises InputError for another word."""
    kind, colon, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if kind not in DEVICES or (colon and (kind != "cuda" or not number.isdecimal())):
        raise InputError(f"{argument}: expected one of {', '.join(DEVICES)}, or cuda:0 and so on; got {device!r}.")
    return kind, colon, number


def check_temp(argument: str, temp: Any) -> Path | None:
    """Return the folder for temporary files, None for "auto"; raises OutputError for a folder that cannot be used."""
    if temp == AUTO:
        return None
    if not isinstance(temp, str | os.PathLike):
        raise InputError(f"{argument}: expected the path of a folder, or 'auto'; got {temp!r}.")
    place = Path(temp)
    if not (place.is_dir() and os.access(place, os.W_OK)):
        raise OutputError(f"{argument}: {place} is no folder that can be written to. Make it first, or choose another.")
    return place


def _checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not None, checked and converted."""
    options = {option: OPTIONS[option][1](option, value) for option, value in given.items() if value is not None}
    grouping = options.get("gpu_grouping", AUTO)
    if options.get("device") == "cpu" and grouping != AUTO:
        raise InputError(
            f"gpu_grouping: {grouping!r} is a way of GPUs, and device='cpu' was asked for. Leave one of them out."
        )
    return options


def _check_device(argument: str, device: Any) -> str:
    split_device(device, argument)
    return str(device)


def _check_word(words: Sequence[str], argument: str, given: Any) -> str:
    if not isinstance(given, str) or given not in words:
        hint = did_you_mean(given, words) if isinstance(given, str) else ""
        raise InputError(f"{argument}: expected one of {', '.join(words)}; got {given!r}.{hint}")
    return given


def _check_memory(argument: str, size: Any) -> int | None:
    return None if size == AUTO else parse_size(argument, size)


def _check_progress(argument: str, progress: Any) -> bool | None:
    """Return the value of the option `progress`, None for "auto". The environment variable has 1, 0 or auto."""
    expected = "True, False or 'auto'"
    if argument == OPTIONS["progress"][0]:
        progress, expected = SWITCHES.get(progress, progress), "1, 0 or auto"
    if progress != AUTO and not isinstance(progress, bool):
        raise InputError(f"{argument}: expected {expected}, got {progress!r}.")
    return None if progress == AUTO else progress


def _check_threads(argument: str, threads: Any) -> int | None:
    if isinstance(threads, str) and threads.isdecimal():
        threads = int(threads)
    return None if threads == AUTO else whole_number(argument, threads, "threads")


# The environment variable of each option, and the function that checks and converts a value. The function takes the
# name of the option or of the variable, for messages, and the value.
OPTIONS: Mapping[str, tuple[str, Callable[[str, Any], Any]]] = {
    "device": ("GPUPIF_DEVICE", _check_device),
    "gpu_grouping": ("GPUPIF_GPU_GROUPING", partial(_check_word, GROUPINGS)),
    "memory_limit": ("GPUPIF_MEMORY_LIMIT", _check_memory),
    "temp": ("GPUPIF_TEMP", check_temp),
    "progress": ("GPUPIF_PROGRESS", _check_progress),
    "threads": ("GPUPIF_NUM_THREADS", _check_threads),
    "compression": ("GPUPIF_COMPRESSION", partial(_check_word, CODECS)),
}
