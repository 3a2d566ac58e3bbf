"""Priors and accuracies that come as tables, of any frame kind or in files: one dictionary by column of them."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..encoding.column import Column, amounts
from ..encoding.encode import encode_column
from ..errors import InputError, PriorError, reason_of
from ..frames.base import Frame
from ..frames.file_frame import FileFrame
from ..frames.open import open_frame
from ..io.documents import parse_json
from ..io.formats import READ_ENDINGS
from ..io.read import open_source
from ..utils.validation import check_unique, table_value
from .hierarchy_files import read_text
from .priors import SUM_TOLERANCE, TextPrior, priors_from_json

# Rows and bytes of a file that are read at once.
CHUNK_ROWS, CHUNK_BYTES = 1 << 16, 1 << 26

ENDINGS = (".json", *READ_ENDINGS)
PRIORS = ("column", "value", "probability")
ACCURACIES = ("column", "accuracy")


class _Given(NamedTuple):
    """A table that the user gave. what: its name in messages."""

    what: str
    columns: dict[str, Column]

    def values(self, name: str) -> list[Any]:
        """Return the Python value of each row of a column."""
        column = self.columns[name]
        values = column.values()
        return [values[code] for code in column.codes.tolist()]

    def numbers(self, name: str) -> list[float]:
        """Return the number in each row of a column, from 0 to 1. Raise PriorError, or InputError for accuracies."""
        column = self.columns[name]
        found = amounts(column)[column.codes]
        # Probabilities that are off by rounding are mended later.
        most = 1 + SUM_TOLERANCE if name == "probability" else 1
        wrong = np.flatnonzero(~((found >= 0) & (found <= most)))
        if len(wrong):
            row = int(wrong[0])
            came = column.values([int(column.codes[row])])[0]
            kind = PriorError if name == "probability" else InputError
            shown = "a missing value" if came is None else table_value(came)
            mend = " Divide percentages by 100." if 1 < found[row] <= 100 else ""
            raise kind(
                f"{self.what}: column {name!r}, row {row} (from 0): expected a number from 0 to 1, got {shown}.{mend}"
            )
        return found.tolist()  # type: ignore[no-any-return]


def as_priors(given: Any) -> Any:
    """Return priors as a dictionary by column, from a table or a path of a table. Return any other argument unchanged.

    The table has columns column, value and probability. If it has values as text, they are texts of a column's values
    (see `TextPrior`). Raise PriorError if a column is missing or has a wrong type, or a value is there twice. Raise the
    errors of `read_table` for a file.
    """
    if _is_path(given) and str(given).lower().endswith(".json"):
        return read_json("priors", Path(given))
    table = _open("priors", given, PRIORS)
    if table is None:
        return given
    names, values, shares = table.values("column"), table.values("value"), table.numbers("probability")
    priors: dict[Hashable, dict[Any, float]] = {}
    for row, (name, value, share) in enumerate(zip(names, values, shares, strict=True)):
        if name is None:
            raise PriorError(f"{table.what}: column 'column', row {row} (from 0): expected a column's name, got none.")
        prior = priors.setdefault(name, {})
        if value in prior:
            shown = "missing" if value is None else table_value(value)
            raise PriorError(
                f"{table.what}: column {name!r}: value {shown} stands there "
                f"twice, the second time in row {row} (from 0). Leave one out, or add them up."
            )
        prior[value] = share
    return {
        name: TextPrior(prior) if all(value is None or isinstance(value, str) for value in prior) else prior
        for name, prior in priors.items()
    }


def as_accuracies(given: Any) -> Any:
    """Accuracies as a dictionary by column: from a table with columns column and accuracy, or a path of one.

    Anything that is no table is returned as it is. Raises InputError as `as_priors` does.
    """
    if _is_path(given) and str(given).lower().endswith(".json"):
        return read_json("accuracies", Path(given))
    table = _open("accuracies", given, ACCURACIES)
    if table is None:
        return given
    accuracies: dict[Hashable, float] = {}
    for row, (name, value) in enumerate(zip(table.values("column"), table.numbers("accuracy"), strict=True)):
        if name is None or name in accuracies:
            came = "none" if name is None else f"{name!r} for the second time"
            raise InputError(
                f"{table.what}: column 'column', row {row} (from 0): expected a column's name, got {came}."
            )
        accuracies[name] = value
    return accuracies


def read_json(argument: str, path: Path) -> dict[str, Any]:
    """Return priors or accuracies from a JSON file. Raise InputError with the fault."""
    shape = '{"column": {"value": probability}}' if argument == "priors" else '{"column": accuracy}'
    text = read_text(f"{argument}: {path}", path)
    try:
        if argument == "priors":
            return dict(priors_from_json(text))
        document = parse_json(text)
    except ValueError as error:
        raise InputError(
            f"{argument}: {path}: expected JSON such as {shape}: {reason_of(error, has_values=False)}."
        ) from None
    if not isinstance(document, dict):
        raise InputError(f"{argument}: {path}: expected an object {shape}, got {table_value(document)}.")
    return document


def check_ending(argument: str, path: Path) -> None:
    """Raise InputError for a path that names neither JSON nor a table."""
    if not _is_path(path):
        raise InputError(f"{argument}: {path}: expected a file name ending in {', '.join(ENDINGS)}.")


def _is_path(given: Any) -> bool:
    """Return whether this names a file. Any other text is more likely a mistake."""
    if not isinstance(given, str | os.PathLike):
        return False
    return str(given).lower().endswith(ENDINGS) or Path(given).exists()


def _open(argument: str, given: Any, names: Sequence[str]) -> _Given | None:
    """Return the columns `names` of a table; None if the argument is no table."""
    if given is None or isinstance(given, Mapping):
        return None
    what = argument
    if _is_path(given):
        what = f"{argument}: {given}"
        frame: Frame = _read(Path(given), what, names)
    else:
        try:
            frame = open_frame(given)
        except InputError:
            return None
        check_unique(frame.names)
        _check_names(what, names, frame.names)
    if frame.rows == 0:
        raise _error(argument)(f"{what}: expected at least one row, got none.")
    with frame.active():
        columns = {name: encode_column(name, frame.column(frame.names.index(name))).on_host() for name in names}
    return _Given(what, columns)


def _read(path: Path, what: str, names: Sequence[str]) -> Frame:
    """Return the columns of a file. Columns of CSV are text, because values may look like numbers without being
    numbers.
    """
    source = open_source(path)
    _check_names(what, names, source.names)
    chunks = [chunk for _, chunk in source.read(names, CHUNK_ROWS, CHUNK_BYTES)]
    return FileFrame(pa.concat_tables(chunks or [source.nothing().select(list(names))]))


def _check_names(what: str, names: Sequence[str], existing: Sequence[Hashable]) -> None:
    lacking = [name for name in names if name not in existing]
    if lacking:
        raise _error(what)(
            f"{what}: expected columns {', '.join(names)}, one row for each {_ROW_OF[tuple(names)]}; there is no "
            f"{lacking[0]!r}. Columns that exist: {', '.join(map(str, existing))}."
        )


# The meaning of the rows of a table of priors or accuracies.
_ROW_OF = {PRIORS: "value of a column", ACCURACIES: "column"}


def _error(what: str) -> type[InputError]:
    return PriorError if what.startswith("priors") else InputError
