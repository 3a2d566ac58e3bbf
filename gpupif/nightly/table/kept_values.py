"""The values of a table's columns, kept so that the next run can count new values exactly."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from ...encoding.column import Column
from ...encoding.merge import number_in
from ...errors import OutputError
from ...io.file_errors import denied
from ...io.section_file import DamagedFileError, Section, checked_facts, put_aside, read_section, write_sections

FORMAT = 2
# The consequence if the values are lost.
LOST = "Which values are new is not known in this run; the next ones are compared with it."


class KeptValues:
    """The file of the values that columns had in a run, with a checksum.

    say: called with a sentence if the file is damaged or gone, or has the values of another run.
    """

    def __init__(self, file: Path, run: int, say: Callable[[str], None]) -> None:
        self._file = file
        self._columns: dict[str, dict[str, Any]] | None = None
        try:
            facts = checked_facts(file)
        except FileNotFoundError:
            say(f"{file}: the values of run {run} are gone. {LOST}")
            return
        except OSError as error:
            raise denied(file, error) from error
        except DamagedFileError:
            say(f"{put_aside(file)}. {LOST}")
            return
        if facts["format"] != FORMAT:
            say(f"{file}: values that another version of gpupif kept, which are not used. {LOST}")
            return
        if facts["run"] != run:
            say(f"New values are those that run {facts['run']} did not have: what run {run} had was lost.")
        self._columns = facts["columns"]

    @property
    def are_lost(self) -> bool:
        """True if there is nothing to compare with."""
        return self._columns is None

    def count_new(self, column: Column) -> int | None:
        """Return how many values of a column are not among its kept values; None if no values were kept at all."""
        if self._columns is None:
            return None
        if column.name not in self._columns:
            return len(column.labels)
        return _count_new(column, self._labels(self._columns[str(column.name)]))

    def _labels(self, stored: dict[str, Any]) -> pa.Array:
        schema = ipc.read_schema(pa.py_buffer(base64.b64decode(stored["schema"])))
        try:
            return ipc.read_record_batch(read_section(self._file, Section(*stored["place"])), schema).column(0)
        except (DamagedFileError, OSError) as error:
            raise OutputError(f"{self._file}: the kept values are damaged or gone. Run again.") from error

    @staticmethod
    def store(file: Path, run: int, columns: Sequence[Column]) -> None:
        """Write the values that columns have in a run to a file, in place of those that it has. Raises OutputError."""
        with write_sections(file) as writer:
            stored: dict[str, Any] = {}
            for column in columns:
                batch = pa.record_batch([column.labels], names=["label"])
                schema = base64.b64encode(batch.schema.serialize()).decode()
                stored[str(column.name)] = {"place": writer.add(batch.serialize()), "schema": schema}
            writer.facts = {"format": FORMAT, "run": run, "columns": stored}


def _count_new(column: Column, before: pa.Array) -> int:
    """Return how many values of a column are new. Values of another type than before are compared as text."""
    labels = column.labels
    if labels.type != before.type:
        try:
            labels, before = labels.cast(pa.large_string()), before.cast(pa.large_string())
        except pa.ArrowException:
            return len(labels)
    return int((number_in(column.name, labels, before) >= len(before)).sum())
