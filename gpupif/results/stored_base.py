"""What scores in files have in common, whether the scores of all cells are there or not."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds

from ..attack.priors import AsDict
from ..errors import TableReadError, reason_of
from ..io.base import Stamp, check_unchanged
from ..io.formats import CSV, written_format
from .base import OutcomeBacking, ScoresDescription
from .figures import ColumnFacts
from .packed_priors import PackedPrior

# Said of a file that is not what it was: what is known of these scores is not of what it holds now.
REPLACED = (
    "the scores changed since they were written or opened. Score the table again, or open what is there now with "
    "gpupif.open_scores."
)


class StoredBacking(OutcomeBacking):
    """Results in files, which are read as long as they are what they were.

    stamps: by file, in order of the rows. description: what they say of themselves, of so many rows; priors: where they
    are at hand.
    """

    def __init__(
        self,
        path: Path,
        stamps: Mapping[Path, Stamp],
        description: ScoresDescription,
        rows: int,
        spilled_bytes: int | None = None,
        priors: Mapping[Hashable, AsDict] | None = None,
    ) -> None:
        super().__init__(description.about, description.outcomes)
        self.path = path
        self.files = list(stamps)
        self._stamps = stamps
        self.spilled_bytes = spilled_bytes
        self._facts = list(description.facts)
        self._packed = None if priors else dict(description.priors)
        self._priors = priors or {
            name: PackedPrior(name, description.priors.get(str(name)), str(path)) for name in self.about.columns
        }
        self._rows = rows

    @property
    def rows(self) -> int:
        return self._rows

    def priors(self) -> Mapping[Hashable, AsDict]:
        return self._priors

    def packed_priors(self) -> dict[str, str]:
        return super().packed_priors() if self._packed is None else self._packed

    def column_facts(self) -> list[ColumnFacts]:
        return self._facts

    def where(self) -> str:
        return f"device {self.about.device}; in {self.path}"

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of the files, some rows at a time, in order. Raises TableReadError."""
        with self._reading():
            yield from self._dataset().to_batches(columns=list(columns))

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Raises TableReadError for files that cannot be read, or that others took the place of before or meanwhile."""
        check_unchanged(self._stamps, REPLACED)
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            check_unchanged(self._stamps, REPLACED)
            raise TableReadError(f"{self.path}: the scores could not be read: {reason_of(error)}.") from error
        check_unchanged(self._stamps, REPLACED)

    @abstractmethod
    def _column_types(self) -> dict[str, pa.DataType]:
        """The types of columns, which CSV does not say: scores may begin with whole numbers."""

    def _dataset(self) -> ds.Dataset:
        form: Any = written_format(self.path or Path()).dataset
        if form == CSV.dataset:
            # Only an empty field is missing.
            missing = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
            types = self._column_types()
            form = ds.CsvFileFormat(convert_options=pyarrow.csv.ConvertOptions(column_types=types, **missing))
        return ds.dataset([str(file) for file in self.files], format=form)
