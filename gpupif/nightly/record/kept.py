"""Scores that are kept of a run: a folder for each, with a manifest of what is in it.

A folder is made under a hidden name, and gets its own once the run is on record:

    stage -> Record.finish -> publish

A run that comes to no results removes its hidden folder (`discard`). One that is killed before it is on record leaves
it, and the next run removes it (`tidy`); one that is killed behind that, one that the next run publishes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._version import __version__
from ...errors import GpupifError, TableReadError, reason_of
from ...io.documents import parse_json
from ...utils.private_folder import OWNER_FILE
from ..outcome import KeptScores
from .state_files import file_digest, state_errors, state_folder, sync, sync_folder, write_file

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from ...results.scores import Scores

# Below the state.
SCORES = "scores"
# In the folder of a run.
SCORE_FILE, KEY_FILE, MANIFEST = "scores.parquet", "keys.parquet", "manifest.json"
FORMAT = 1
STAGED, REMOVED = ".staged-", ".removed-"
_FOLDER = re.compile(r"(?P<state>\.staged-|\.removed-|)run-(?P<number>\d+)")


class Manifest(NamedTuple):
    """What a folder of kept scores says of itself.

    kind: "cells" or "all". where: of cells, those where it holds. secret: the name of the one by which its keys were
    made, None without keys. files: by name size and BLAKE2b digest.
    """

    run: int
    kind: str
    where: str | None
    measures: Sequence[str]
    config_digest: str
    secret: str | None
    files: Mapping[str, tuple[int, str]]


def stage(
    state: Path,
    number: int,
    scores: Scores,
    kind: str,
    where: str | None = None,
    keys: Iterable[pa.RecordBatch] | None = None,
    *,
    config_digest: str = "",
    show_values: bool = False,
) -> KeptScores:
    """Write what is kept of the scores of a run, which is not yet on record; what the record is to say of it.

    kind: "all" scores, or the "cells" where a condition holds (`where`, see `Scores.cells`; None: all of them). keys:
    the columns that tell rows apart, of the whole table in order, some rows at a time. show_values: keep them as they
    are too. Raises OutputError where it cannot be written.
    """
    folder = staging_folder(state, number)
    if kind == "all":
        scores.write(folder / SCORE_FILE)
    else:
        scores.cells(where).write(folder / SCORE_FILE)
    return seal(state, number, kind, where, keys, config_digest=config_digest, show_values=show_values)


def staging_folder(state: Path, number: int) -> Path:
    """An empty folder for what is kept of a run, for who writes the scores (`SCORE_FILE`) as they are made."""
    folder = state_folder(state_folder(state) / SCORES) / f"{STAGED}{folder_name(number)}"
    with state_errors(folder):
        shutil.rmtree(folder, ignore_errors=True)
    return state_folder(folder)


def seal(
    state: Path,
    number: int,
    kind: str,
    where: str | None = None,
    keys: Iterable[pa.RecordBatch] | None = None,
    *,
    config_digest: str = "",
    show_values: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> KeptScores:
    """Bring a staged folder, which has its scores, to the disk with all else that belongs in it; see `stage`.

    say: is told, in a sentence, what was found damaged.
    """
    from ...results.open import open_scores
    from .row_keys import name_of_secret, secret_of, write_keys

    place = state / SCORES
    folder = place / f"{STAGED}{folder_name(number)}"
    scores = open_scores(folder / SCORE_FILE)
    secret = None
    if keys is not None:
        secret = secret_of(place, say)
        wanted = _rows_of_cells(folder / SCORE_FILE) if kind == "cells" else None
        write_keys(folder / KEY_FILE, keys, scores.rows, wanted, secret, show_values)
    files = {}
    for file in sorted(folder.iterdir()):
        with state_errors(file):
            file.chmod(OWNER_FILE)
            sync(file)
        files[file.name] = file_digest(file)
    document = {
        "format": FORMAT,
        "gpupif": __version__,
        "run": number,
        "kind": kind,
        "where": where,
        "measures": list(scores.measures),
        "config_digest": config_digest,
        "secret": None if secret is None else name_of_secret(secret),
        "files": {name: {"bytes": size, "blake2b": digest} for name, (size, digest) in files.items()},
    }
    text = json.dumps(document, indent=2).encode()
    write_file(folder / MANIFEST, text)
    files[MANIFEST] = file_digest(folder / MANIFEST)
    sync_folder(place)
    return KeptScores(f"{SCORES}/{folder_name(number)}", kind, files)


def _rows_of_cells(file: Path) -> Iterator[npt.NDArray[np.int64]]:
    """The rows of the cells in a file, which are in their order."""
    import pyarrow.parquet as pq

    from ...results.cell_table import ROW
    from .row_keys import READ_ROWS

    with pq.ParquetFile(file) as cells:
        for batch in cells.iter_batches(READ_ROWS, columns=[ROW]):
            yield batch.column(0).to_numpy()


def folder_name(number: int) -> str:
    """Of the kept scores of a run."""
    return f"run-{number:06}"


def kept_numbers(state: Path) -> dict[int, Path]:
    """The folders of kept scores that have their own names, by run."""
    return {number: folder for prefix, number, folder in _folders(state) if not prefix}


def find(state: Path, number: int) -> Path | None:
    """The folder of the kept scores of a run that is on record; None where there is none."""
    place = state / SCORES
    # Between the record and its own name it has that under which it was made.
    several = [place / f"{prefix}{folder_name(number)}" for prefix in ("", STAGED)]
    return next((folder for folder in several if folder.is_dir()), None)


def publish(state: Path, number: int) -> None:
    """Give the staged folder of a run that is on record its own name. Raises OutputError where that cannot be."""
    place = state / SCORES
    folder = place / folder_name(number)
    with state_errors(folder):
        folder.with_name(f"{STAGED}{folder.name}").rename(folder)
        sync_folder(place)


def discard(state: Path, number: int) -> None:
    """Remove the staged folder of a run, if there is one; what the disk refuses to remove the next run does."""
    shutil.rmtree(state / SCORES / f"{STAGED}{folder_name(number)}", ignore_errors=True)


def remove(state: Path, number: int) -> None:
    """Remove the kept scores of a run, if there are any. Raises OutputError where that cannot be."""
    folder = state / SCORES / folder_name(number)
    gone = folder.with_name(f"{REMOVED}{folder.name}")
    with state_errors(folder):
        if folder.exists():
            # First, so that no half of it has the name.
            folder.rename(gone)
        if gone.exists():
            shutil.rmtree(gone)


def tidy(state: Path, keeping: Collection[int], removed: Collection[int]) -> None:
    """Finish what runs that were killed had begun: publish what the record knows, remove what no run owns.

    keeping: runs that have kept scores, as the record has it; removed: runs that retention removed. A folder with its
    own name that the record does not know, of a record that was lost, stays. Raises OutputError.
    """
    for prefix, number, folder in list(_folders(state)):
        if prefix == STAGED and number in keeping:
            publish(state, number)
        elif prefix or number in removed:
            with state_errors(folder):
                remove(state, number) if not prefix else shutil.rmtree(folder)


def _folders(state: Path) -> Iterator[tuple[str, int, Path]]:
    """What the name of each folder begins with, its run, and itself."""
    place = state / SCORES
    if not place.is_dir():
        return
    for folder in sorted(place.iterdir()):
        found = _FOLDER.fullmatch(folder.name)
        if found is not None:
            yield found["state"], int(found["number"]), folder


def read_manifest(folder: Path) -> Manifest:
    """What a folder of kept scores says of itself. Raises TableReadError where that is damaged or gone."""
    file = folder / MANIFEST
    try:
        document: dict[str, Any] = parse_json(file.read_bytes())
        if document["format"] != FORMAT:
            raise TableReadError(f"{file}: expected format {FORMAT}, got {document['format']!r}.")
        files = {name: (facts["bytes"], facts["blake2b"]) for name, facts in document["files"].items()}
        return Manifest(files=files, **{name: document[name] for name in Manifest._fields if name != "files"})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, GpupifError):
            raise
        raise TableReadError(f"{file}: the manifest is damaged or gone ({reason_of(error)}).") from error


def check(folder: Path, kept: KeptScores) -> Iterator[str]:
    """What is not as the record has it in a folder of kept scores, one sentence each; all of it is read."""
    for name, (size, digest) in kept.files.items():
        try:
            found = file_digest(folder / name)
        except TableReadError as error:
            yield str(error)
            continue
        if found != (size, digest):
            yield f"{folder / name}: is not as it was kept: its checksum, or its size, is another one."
    for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
        if name not in kept.files:
            yield f"{folder / name}: belongs to no run."
