"""Errors of files that cannot be read or written. Each says which file, why, and how to mend it."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from ..errors import OutputError, TableReadError, marked, reason_of
from ..utils.private_folder import real_path

GZIP = "a gzip archive"
# The bytes that files of other kinds begin with, the kind, and the advice that an error gives.
SIGNATURES = {
    b"PAR1": ("Parquet", "Give it a name that ends in .parquet."),
    b"ARROW1": ("Feather", "Give it a name that ends in .feather."),
    b"PK\x03\x04": ("a ZIP archive or an Excel workbook", "Unpack it, or save the sheet as CSV."),
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", "Save the sheet as CSV."),
    b"\x1f\x8b": (GZIP, "Unpack it, or give it a name that ends in .gz, such as table.csv.gz."),
}
SIGNATURE_BYTES = max(map(len, SIGNATURES))
# The errors of the system if too many files are open, in a process or in all, and the advice for them.
TOO_MANY_OPEN = (errno.EMFILE, errno.ENFILE)
MORE_OPEN = "Allow more open files (ulimit -n), or close those of other threads and programs."


def unreadable(file: Path, kind: str, error: Exception, where: str = "") -> TableReadError:
    """Return the error for a file of a table that cannot be read or parsed.

    kind: the name of the format. where: the end of the reason, which says where in the file the error is.
    """
    if isinstance(error, PermissionError):
        return denied(file, error)
    return misnamed_file(file, kind) or TableReadError(
        f"{file}: could not be read as {kind}; it may be truncated, or not be what its name says "
        f"({_reason(error)}{where})."
    )


def _reason(error: Exception) -> str:
    """Return the reason of a library that cannot read a file, see `reason_of`."""
    # Arrow quotes a whole row of CSV without quotation marks, if the row has another number of fields.
    before, got, behind = " ".join(str(error).split()).partition(" columns, got ")
    number, colon, row = behind.partition(": ")
    if before.startswith("CSV parse error: ") and colon:
        return f"{before}{got}{number}{colon}{marked(row)}"
    return reason_of(error)


def misnamed_file(file: Path, kind: str) -> TableReadError | None:
    """Return the error for a file that begins as a file of another format.

    None if the file begins otherwise, or cannot be read. kind: the name of the format that the file should have.
    """
    try:
        with file.open("rb") as stream:
            start = stream.read(SIGNATURE_BYTES)
    except OSError:
        return None
    for signature, (other, advice) in SIGNATURES.items():
        packed = file.suffix.lower() == ".gz" and other == GZIP
        if start.startswith(signature) and other != kind and not packed:
            return TableReadError(f"{file}: could not be read as {kind}: it begins as {other} does. {advice}")
    return None


def denied(place: Path, error: OSError) -> TableReadError:
    """Return the error for a file or folder that the system refuses to read."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    advice = " Check its rights, and those of its folders." if isinstance(error, PermissionError) else ""
    return TableReadError(f"{place}: could not be read: {reason}.{advice}")


def damaged(file: Path) -> OutputError:
    """Return the error for a file of a run that cannot be read again."""
    return OutputError(
        f"{real_path(file)}: a file of the run is damaged or gone. Start again without resume (--resume)."
    )


# The advice for an output whose disk is full.
ELSEWHERE = "choose another place for the output"


@contextlib.contextmanager
def disk_errors(file: Path, elsewhere: str = "choose another place with temp (--temp)") -> Iterator[None]:
    """Raise OutputError if the disk refuses something while the block runs: which file, why, and how to mend it.

    elsewhere: the advice for a full disk, beside freeing some space.
    """
    try:
        yield
    except OSError as error:
        advice = {errno.ENOSPC: f" Free some space, or {elsewhere}.", **dict.fromkeys(TOO_MANY_OPEN, f" {MORE_OPEN}")}
        raise OutputError(
            f"{real_path(file)}: could not be written: {error.strerror or error}.{advice.get(error.errno or 0, '')}"
        ) from error
