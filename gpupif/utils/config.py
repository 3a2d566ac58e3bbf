"""Where and within what gpupif computes: device, memory, temporary files, progress, threads, for all functions at once.

An option has the value of the innermost `config` block around the call that names it, else that of the process
(`set_config`), else that of its environment variable, else gpupif chooses.
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
# How a GPU finds rows that agree.
GROUPINGS = (AUTO, "cudf", "rotation")
# How files of scores are compressed.
CODECS = (AUTO, "zstd", "lz4", "snappy", "none")
SWITCHES: Mapping[str, bool] = {"1": True, "0": False}
Auto = Literal["auto"]


@dataclass(frozen=True)
class Resources:
    """What holds where it is asked for, see `resources`; None: gpupif chooses.

    memory_limit: in bytes. The others as of `config`.
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
        """Bytes that the process may take: the limit, or 60 % of what is free beside what it has already."""
        return default_limit() if self.memory_limit is None else self.memory_limit


class Block:
    """The time of a ``with`` statement in which options hold, in this thread and those that gpupif starts for it."""

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
    """Say for a ``with`` block where and within what gpupif computes; results do not depend on it.

    It holds for every function of gpupif that is called in the block, by this thread: blocks in other threads do not
    mind each other. Options that are not named stay as they are, so that blocks can be nested. For the whole process
    there is `set_config`, and for each option an environment variable; a block goes before both.

    Parameters
    ----------
    device:
        "cpu"; "cuda" (all GPUs that work) or "cuda:1" (one); or "auto": "cuda" where that can be used, but "cpu" for
        tables of fewer than 10,000,000 cells. ``Scores.device`` says which ran, ``gpupif info`` why not CUDA. Of a Dask
        DataFrame: what each worker uses, however small it is. GPUPIF_DEVICE.
    gpu_grouping:
        How a GPU finds rows that agree: "cudf" (cuDF hashes their keys), "rotation" (they are sorted), or "auto":
        "cudf" where it is installed. More than 2^31 - 1 rows are sorted whatever is said, and so are rows of which a
        measure needs the values of a cohort in order (emd, recursive_n). GPUPIF_GPU_GROUPING.
    memory_limit:
        The memory that the process may take, what it holds already included, such as "8GiB", or in bytes; "auto": 60 %
        of what is free beside that. With a limit, tables of files are always read in streams; with "auto" those are
        that do not fit. Workers of Dask have limits of their own. GPUPIF_MEMORY_LIMIT.
    temp:
        A folder for temporary files; "auto": beside the output, or the system's where there is none. GPUPIF_TEMP.
    progress:
        Show progress on standard error: True, False, or "auto": where that is a terminal. False keeps other words on
        standard error away, too, but no warnings. GPUPIF_PROGRESS: 1, 0 or auto.
    threads:
        Threads of the CPU; "auto": as many as it has cores for this process. A task of Dask takes one, or as many as
        the process of its worker was told. GPUPIF_NUM_THREADS.
    compression:
        How files of scores are compressed: "zstd" (small), "lz4" (fast), "snappy", "none", or "auto": "zstd" for
        Parquet, "lz4" for Feather, which has no "snappy"; CSV is not compressed. Columns that would not get smaller
        are not either. Scores of a Dask DataFrame heed it, too, unless `Scores.to_parquet` is given Dask's own option.
        GPUPIF_COMPRESSION.

    Returns
    -------
    Block
        For ``with``, which gives the `Resources` that hold in it.

    Raises
    ------
    InputError
        At once: a value that an option cannot have; ``device="cpu"`` with a way of GPUs to group.
    OutputError
        A folder for temporary files that is none, or that cannot be written to.

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
    """Say for the whole process, all its threads, where and within what gpupif computes; see `config` for a block.

    Returns
    -------
    Resources
        What holds from now on; without arguments, what holds.

    Raises
    ------
    InputError, OutputError
        As `gpupif.config`; nothing is changed then.

    """
    global _process
    options = _checked(locals())
    with _changing:
        _process = {**_process, **options}
    return resources()


def resources() -> Resources:
    """What holds here; raises InputError or OutputError for an environment variable that says nothing of use."""
    given = {**_process, **_blocks.get()}
    variables = {option: name for option, (name, _) in OPTIONS.items() if option not in given and name in os.environ}
    read = {option: OPTIONS[option][1](name, os.environ[name]) for option, name in variables.items()}
    return Resources(**read, **given)


def split_device(device: Any, argument: str = "device") -> tuple[str, str, str]:
    """A word for a device, taken apart at its colon; raises InputError where it is none."""
    kind, colon, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if kind not in DEVICES or (colon and (kind != "cuda" or not number.isdecimal())):
        raise InputError(f"{argument}: expected one of {', '.join(DEVICES)}, or cuda:0 and so on; got {device!r}.")
    return kind, colon, number


def check_temp(argument: str, temp: Any) -> Path | None:
    """The place for temporary files; raises OutputError where it cannot be used."""
    if temp == AUTO:
        return None
    if not isinstance(temp, str | os.PathLike):
        raise InputError(f"{argument}: expected the path of a folder, or 'auto'; got {temp!r}.")
    place = Path(temp)
    if not (place.is_dir() and os.access(place, os.W_OK)):
        raise OutputError(f"{argument}: {place} is no folder that can be written to. Make it first, or choose another.")
    return place


def _checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options that are given, checked."""
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
    """A switch: True or False, of an environment variable 1 or 0."""
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


# By option its environment variable, and what checks a value: called with what messages name, the option or variable.
OPTIONS: Mapping[str, tuple[str, Callable[[str, Any], Any]]] = {
    "device": ("GPUPIF_DEVICE", _check_device),
    "gpu_grouping": ("GPUPIF_GPU_GROUPING", partial(_check_word, GROUPINGS)),
    "memory_limit": ("GPUPIF_MEMORY_LIMIT", _check_memory),
    "temp": ("GPUPIF_TEMP", check_temp),
    "progress": ("GPUPIF_PROGRESS", _check_progress),
    "threads": ("GPUPIF_NUM_THREADS", _check_threads),
    "compression": ("GPUPIF_COMPRESSION", partial(_check_word, CODECS)),
}
