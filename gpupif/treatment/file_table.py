"""A table of files after the steps so far: steps are applied when rows are read, within the memory limit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ..attack.arguments import Arguments
from ..encoding.merge import LEAST_PENDING, ValueCounts
from ..encoding.plain_values import plain_labels
from ..engines.choose import choose_engine
from ..errors import InputError
from ..frames.open import device_for
from ..io.base import Source
from ..io.checkpoints import Store
from ..io.file_errors import disk_errors
from ..io.parquet_files import READ_BYTES
from ..out_of_core.file_encoding import READS_PER_CHUNK, rows_read
from ..out_of_core.memory_budget import CHUNK_SHARE, LEAST_CHUNK, Budget
from ..out_of_core.merged_values import MERGING, check_values
from ..out_of_core.output_options import OutputOptions
from ..out_of_core.scoring_run import score_source
from ..rows.threads import Workers
from ..utils.config import resources
from ..utils.memory import give_back_unused, shown
from ..utils.private_folder import open_private, private_folder
from ..utils.progress import Reporter
from .coded_columns import coded_column, column_values
from .lazy_table import Counted, LazyTable, joined_values, values_in
from .steps import Chunk, RowFacts
from .treated_source import TreatedSource, TypedSource

# The share of the working memory that the codes of all rows may take.
CODES_SHARE = 0.5
# Advice for errors about a treatment that needs too much memory, beside a higher limit.
LESS_AT_ONCE = "let the treatment use fewer columns, or split the plan and treat the output of its first part"
# The most rows for which facts are computed at once, and the bytes of each score then: as read, as array, as fact.
FACT_ROWS, SCORE_BYTES = 1 << 20, 64


class FileTable(LazyTable):
    """A table of files.

    source: the original files.
    store: temporary files of the run. It knows which of them a killed run has finished.
    budget: sizes in memory that follow from the memory limit.
    all_typed: whether each column of text files gets the type of its values. Default False: only columns that a
        treatment names.
    """

    def __init__(self, source: Source, store: Store, budget: Budget, report: Reporter, all_typed: bool = False) -> None:
        super().__init__(source.names)
        self._source = source
        self._store = store
        self._budget = budget
        self._report = report
        self._all_typed = all_typed
        self._rows = source.rows
        self._facts = 0

    def source(self, plain: bool = False) -> TreatedSource:
        """Return the files after all steps so far. plain: see `TreatedSource`."""
        return TreatedSource(self._source, self.steps, plain)

    def each(self, function: Callable[[Chunk], Any], columns: Sequence[Any]) -> Iterator[Any]:
        source, size = self.source(plain=True), self._budget.values_bytes() // READS_PER_CHUNK
        for file in source.input_files.files:
            for _, chunk in source.treated(file, columns, self._budget.chunk_rows, size):
                yield function(chunk)

    def type_before(self, name: Any) -> pa.DataType:
        return coded_column(name, self._source.nothing().column(name)).labels.type

    def expect(self, names: Sequence[Hashable]) -> None:
        """Find the types of columns of text files: all texts are read now, as only they show a type."""
        if self._source.input_files.format.as_text:
            typed = list(self._source.names if self._all_typed else dict.fromkeys(names))
            for name, counted in (self.count(typed) if typed else {}).items():
                labels = plain_labels(self._source.labels(counted.labels))
                self._values[name] = column_values(labels, counted.counts, counted.missing)
            self._source = TypedSource(self._source, {str(name): own.labels.type for name, own in self._values.items()})

    def count(self, names: Sequence[Hashable]) -> Counted:
        """Return the values of columns, see `LazyTable`. Columns that do not fit into memory are absent.

        Raises InputError if the first column does not fit.
        """
        done, memory = rows_read(self._source, self._report), self._budget.values_bytes()
        counted: dict[Hashable, list[ValueCounts]] = {name: [] for name in names}

        def add(name: Hashable, part: ValueCounts) -> None:
            parts = counted[name]
            parts.append(part)
            if sum(own.labels.nbytes for own in parts[1:]) < max(LEAST_PENDING, parts[0].labels.nbytes):
                return
            parts[:] = [joined_values(name, parts)]
            if MERGING * parts[0].labels.nbytes > memory:
                if name == names[0]:
                    check_values(name, parts[0], memory)
                del counted[name]

        def values(chunk: Chunk) -> Counted:
            done(chunk.rows_before)
            return values_in(list(counted), names[0], chunk)

        with Workers() as workers:
            for own in self.each(values, names):
                for name in set(counted) - set(own):
                    del counted[name]
                workers.run(add, own.items())
        return {name: joined_values(name, parts) for name, parts in counted.items()}

    def check_memory(self, names: Sequence[Hashable], code_bytes: int, row_bytes: int) -> None:
        most = self._budget.working if row_bytes else int(CODES_SHARE * self._budget.working)
        needed = self.rows * (code_bytes + row_bytes)
        if needed > most:
            raise InputError(
                f"memory_limit: the treatment needs all rows at once of {', '.join(map(str, names))}: their codes and "
                f"working memory take about {shown(needed)}, and the limit leaves {shown(most)}. Raise the limit "
                f"(--memory-limit), or {LESS_AT_ONCE}."
            )

    def facts_of(self, arrays: Mapping[str, npt.NDArray[Any]]) -> RowFacts:
        folder = self._store.fresh(self._next_facts())
        writer = FactsWriter(folder)
        writer.write(arrays)
        return StoredFacts(folder, writer.types)

    def scores(
        self, arguments: Arguments, make: Callable[[Mapping[str, npt.NDArray[Any]]], Mapping[str, npt.NDArray[Any]]]
    ) -> RowFacts:
        name = self._next_facts()

        def find() -> dict[str, str]:
            folder = self._store.fresh(name)
            output = folder / "scores.parquet"
            source = self.source(plain=True)
            score_source(
                source,
                arguments,
                choose_engine(device_for(source, arguments.known_sets)),
                OutputOptions(output, resources().memory),
                self._report,
                mend=LESS_AT_ONCE,
            )
            writer = FactsWriter(folder)
            with pq.ParquetFile(output, buffer_size=READ_BYTES, pre_buffer=False) as scores:
                fits = int(CHUNK_SHARE * self._budget.working) // (SCORE_BYTES * scores.metadata.num_columns)
                for batch in scores.iter_batches(max(LEAST_CHUNK, min(FACT_ROWS, fits))):
                    columns = zip(batch.schema.names, batch.columns, strict=True)
                    writer.write(make({name: column.to_numpy(zero_copy_only=False) for name, column in columns}))
            output.unlink()
            # The next treatment plans with the memory that is left of the limit.
            give_back_unused()
            return writer.types

        return StoredFacts(self._store.part(name), self._store.once(name, find))

    def _next_facts(self) -> str:
        """Return a new name for a folder of facts. A resumed run gives equal names in equal order."""
        self._facts += 1
        return f"facts-{self._facts}"


class StoredFacts(RowFacts):
    """Facts in a folder: a file for each name, with an item for each row. types: NumPy type by name."""

    def __init__(self, folder: Path, types: Mapping[str, str]) -> None:
        self._files = {name: folder / f"{place}.bin" for place, name in enumerate(types)}
        self._types = {name: np.dtype(kind) for name, kind in types.items()}

    def read(self, chunk: Chunk) -> dict[str, npt.NDArray[Any]]:
        return {
            name: np.fromfile(file, self._types[name], chunk.rows, offset=chunk.start * self._types[name].itemsize)
            for name, file in self._files.items()
        }


class FactsWriter:
    """The writer of facts to a folder, chunk by chunk. types: NumPy type by name; empty before the first chunk."""

    def __init__(self, folder: Path) -> None:
        self.types: dict[str, str] = {}
        self._folder = folder
        with disk_errors(folder):
            private_folder(folder)

    def write(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Append the facts of the next rows."""
        if not self.types:
            self.types = {name: np.asarray(array).dtype.str for name, array in arrays.items()}
            for place in range(len(arrays)):
                (self._folder / f"{place}.bin").unlink(missing_ok=True)
        with disk_errors(self._folder):
            for place, (name, kind) in enumerate(self.types.items()):
                with open_private(self._folder / f"{place}.bin", "ab") as file:
                    np.ascontiguousarray(arrays[name], kind).tofile(file)
