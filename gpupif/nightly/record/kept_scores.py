"""The kept scores of runs: one folder for each run, with a manifest of its files; and which runs are kept at all.

The name of a folder says how far it is. It gets its final name once the run is in the record:

    KeptFolder.create      Record.finish    KeptFolder.publish
    .staged-run-000012                      run-000012

A run without results deletes its staging folder (`discard`). A killed run leaves it, and the next run decides (`tidy`):
it publishes the folder if the record has the run, and deletes it if not.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ..._version import __version__
from ...errors import GpupifError, TableReadError, reason_of
from ...io.documents import parse_json
from ...results.cell_table import ROW
from ...results.open import open_scores
from ...utils.private_folder import OWNER_FILE, sync, sync_folder
from ..configuration.settings import KeepSettings
from ..exit_codes import Status
from ..run_outcome import KeptScores
from .record import Record, time_of
from .row_keys import READ_ROWS, name_of_secret, secret_of, write_keys
from .state_folder import file_digest, state_errors, state_folder, write_file

# The folder of all kept scores, in the state folder.
SCORES = "scores"
# Files in the folder of a run.
SCORE_FILE, KEY_FILE, MANIFEST = "scores.parquet", "keys.parquet", "manifest.json"
# Version of the manifest's format.
FORMAT = 1
# Prefixes of the names of folders that are being written, and of folders that are being deleted.
STAGED, REMOVED = ".staged-", ".removed-"
_NAME = re.compile(r"(?:\.staged-|\.removed-|)run-(\d+)")


class KeptFolder:
    """The folder of the kept scores of a run, in one of three states, each with its own name.

    number: of the run.
    final: the folder, complete, of a run in the record.
    staging: the folder while it is being written.
    doomed: the folder while it is being deleted.
    """

    def __init__(self, state: Path, number: int) -> None:
        scores, name = state / SCORES, f"run-{number:06}"
        self.number = number
        self.final, self.staging, self.doomed = scores / name, scores / f"{STAGED}{name}", scores / f"{REMOVED}{name}"

    @classmethod
    def find_all(cls, state: Path) -> list[KeptFolder]:
        """Return the folders of all runs that have one in any state, by number."""
        scores = state / SCORES
        names = [_NAME.fullmatch(folder.name) for folder in scores.iterdir()] if scores.is_dir() else []
        return [cls(state, number) for number in sorted({int(name[1]) for name in names if name is not None})]

    def find(self) -> Path | None:
        """Return the folder if it is complete, for a run that is in the record; None if there is none."""
        # A run that is in the record but not published yet still has its staging folder.
        return next((folder for folder in (self.final, self.staging) if folder.is_dir()), None)

    def create(self) -> Path:
        """Create an empty staging folder and return it. The caller writes the scores to `SCORE_FILE` in it."""
        state_folder(self.staging.parent)
        with state_errors(self.staging):
            shutil.rmtree(self.staging, ignore_errors=True)
        return state_folder(self.staging)

    def publish(self) -> None:
        """Rename the staging folder to its final name; the run is in the record. Raises OutputError."""
        with state_errors(self.final):
            self.staging.rename(self.final)
            sync_folder(self.final.parent)

    def discard(self) -> None:
        """Delete the staging folder, if there is one. Files that cannot be deleted are left to `tidy`."""
        shutil.rmtree(self.staging, ignore_errors=True)

    def delete(self) -> None:
        """Delete the folder with its final name, if there is one, and one that is half deleted. Raises OutputError."""
        with state_errors(self.final):
            if self.final.exists():
                # Rename first: a folder with its final name is always complete, even if we are killed while deleting.
                self.final.rename(self.doomed)
            if self.doomed.exists():
                shutil.rmtree(self.doomed)


class Manifest(NamedTuple):
    """The manifest of a folder of kept scores.

    run: number of the run.
    kind: "all" scores, or "cells".
    where: the condition on the cells, None without one.
    measures: names of the measures.
    config_digest: digest of the configuration of the run.
    secret: name of the secret that the digests of the row keys were made with; None without row keys.
    files: size in bytes and BLAKE2b digest of each file, by name.
    """

    run: int
    kind: str
    where: str | None
    measures: Sequence[str]
    config_digest: str
    secret: str | None
    files: Mapping[str, tuple[int, str]]


def seal(
    folder: KeptFolder,
    kind: str,
    where: str | None = None,
    keys: Iterable[pa.RecordBatch] | None = None,
    *,
    config_digest: str = "",
    show_values: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> KeptScores:
    """Complete a staging folder that has its scores: add keys and manifest, and flush all of it to disk.

    kind: "all" scores, or "cells": those that meet the condition `where` (see `Scores.cells`), all if it is None.
    keys: chunks of the row key columns, for the whole table in order. None: no keys are kept.
    show_values: keep the values of the row keys beside their digests.
    say: called with a sentence if the secret of the row keys is found damaged.

    Returns the facts for the record. Raises OutputError.
    """
    place, staging = folder.staging.parent, folder.staging
    scores = open_scores(staging / SCORE_FILE)
    secret = None
    if keys is not None:
        secret = secret_of(place, say)
        is_all = kind == "all"
        wanted = np.ones(scores.rows, bool) if is_all else _rows_of_cells(staging / SCORE_FILE, scores.rows)
        write_keys(staging / KEY_FILE, keys, wanted, secret, show_values)
    files = {}
    for file in sorted(staging.iterdir()):
        with state_errors(file):
            file.chmod(OWNER_FILE)
            sync(file)
        files[file.name] = file_digest(file)
    made_with = None if secret is None else name_of_secret(secret)
    manifest = Manifest(folder.number, kind, where, list(scores.measures), config_digest, made_with, files)
    listed = {name: {"bytes": size, "blake2b": digest} for name, (size, digest) in files.items()}
    document = {"format": FORMAT, "gpupif": __version__, **manifest._asdict(), "files": listed}
    write_file(staging / MANIFEST, json.dumps(document, indent=2).encode())
    files[MANIFEST] = file_digest(staging / MANIFEST)
    sync_folder(place)
    return KeptScores(f"{SCORES}/{folder.final.name}", kind, files)


def _rows_of_cells(file: Path, rows: int) -> npt.NDArray[np.bool_]:
    """Return whether each row of the table, which has so many rows, has a cell in a file of cells."""
    wanted = np.zeros(rows, bool)
    with pq.ParquetFile(file) as cells:
        for batch in cells.iter_batches(READ_ROWS, columns=[ROW]):
            wanted[batch.column(0).to_numpy()] = True
    return wanted


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder of kept scores. Raises TableReadError if it is damaged or missing."""
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
    """Compare a folder of kept scores with the record, and yield a sentence for each file that differs.

    All files are read. kept: the files according to the record.
    """
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


def remove_expired(record: Record, keep: KeepSettings, now: datetime) -> list[int]:
    """Remove the runs that have expired, see `expired`, and return their numbers.

    Removing a run deletes its kept scores and its document in the record, except the facts that say there was such a
    run, how it ended and when it was removed.

    record: opened for writing, while this process holds the lock of the state folder. Raises OutputError.
    """
    good = record.last_good()
    removed = expired(record.heads(), keep, now, None if good is None else good.number)
    # Mark the runs as removed in the record first. If we are killed before their scores are deleted, the next run
    # deletes the scores (`tidy`); the other way round the record would have runs whose scores are gone.
    if removed:
        record.remove(removed, now)
    for number in removed:
        KeptFolder(record.folder, number).delete()
    return removed


def expired(heads: Sequence[Mapping[str, Any]], keep: KeepSettings, now: datetime, good: int | None) -> list[int]:
    """Return the numbers of the runs that need not be kept any longer, in ascending order.

    A run is kept if it is one of the last `keep.runs` or began within the last `keep.days` days. All runs are kept if
    neither is set. The last good run and a run in progress are always kept.

    heads: see `Record.heads`. good: number of the last good run, None if there is none.
    """
    if keep.runs is None and keep.days is None:
        return []
    present = [head["number"] for head in heads if head["removed"] is None]
    staying = {good, *(head["number"] for head in heads if head["status"] == Status.RUNNING)}
    if keep.runs is not None:
        staying |= set(present[-keep.runs :])
    if keep.days is not None:
        oldest = now - timedelta(days=keep.days)
        latest: datetime | None = None
        for head in heads:
            # The clock may have been set back between two runs: a run counts as no older than the runs before it.
            latest = max(filter(None, (latest, time_of(head["started"]))), default=None)
            # A run is kept if neither it nor any run before it has a readable time.
            if latest is None or latest >= oldest:
                staying.add(head["number"])
    return [number for number in present if number not in staying]


def tidy(record: Record) -> None:
    """Finish what killed runs left half done with their kept scores.

    Staging folders of runs in the record are published, all other unfinished folders are deleted, and so are the
    folders of runs that retention removed. A published folder of a run that the record does not know stays: the record
    may have been lost.

    record: opened for writing, while this process holds the lock of the state folder. Raises OutputError.
    """
    heads = {head["number"]: head for head in record.heads()}
    for folder in KeptFolder.find_all(record.folder):
        head = heads.get(folder.number)
        if folder.staging.is_dir() and head is not None and head["kept_path"] is not None:
            folder.publish()
        for unfinished in (folder.staging, folder.doomed):
            if unfinished.is_dir():
                with state_errors(unfinished):
                    shutil.rmtree(unfinished)
        if head is not None and head["removed"] is not None:
            folder.delete()
