"""A table of files after the steps so far: steps are applied when rows are read, within the memory limit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from ..attack.arguments import Arguments
from ..encoding.merge import ColumnMerger, ValueCounts, encode_part
from ..encoding.plain_values import plain_labels
from ..engines.choose import choose_engine
from ..errors import ColumnTypeError, InputError
from ..frames.open import device_for
from ..io.base import Source
from ..io.checkpoints import Store
from ..io.file_errors import disk_errors
from ..io.parquet_files import READ_BYTES
from ..io.read import in_chunks
from ..out_of_core.file_encoding import READS_PER_CHUNK, rows_read
from ..out_of_core.memory_budget import CHUNK_SHARE, LEAST_CHUNK, Budget
from ..out_of_core.merged_values import MERGING, check_values
from ..out_of_core.output_options import OutputOptions
from ..out_of_core.scoring_run import score_source
from ..rows.keys import code_type
from ..rows.threads import Workers
from ..utils.config import resources
from ..utils.memory import give_back_unused, shown
from ..utils.private_folder import open_private, private_folder
from ..utils.progress import Reporter
from .coded_columns import CodedColumn, ColumnValues, coded_column, column_values, with_other_labels
from .steps import Chunk, RowFacts, Step, StepCounts, Steps
from .treated_source import TreatedSource, TypedSource
from .treatment import TreatedTable

# The share of the working memory that the codes of all rows may take.
CODES_SHARE = 0.5
# Advice for errors about a treatment that needs too much memory, beside a higher limit.
LESS_AT_ONCE = "let the treatment use fewer columns, or split the plan and treat the output of its first part"
# The most rows for which facts are computed at once, and the bytes of each score then: as read, as array, as fact.
FACT_ROWS, SCORE_BYTES = 1 << 20, 64


class FileTable(TreatedTable):
    """A table of files.

    source: the original files.
    store: temporary files of the run. It knows which of them a killed run has finished.
    budget: sizes in memory that follow from the memory limit.
    all_typed: whether each column of text files gets the type of its values. Default False: only columns that a
        treatment names.
    """

    def __init__(self, source: Source, store: Store, budget: Budget, report: Reporter, all_typed: bool = False) -> None:
        self.counts: list[StepCounts] = []
        self._source = source
        self._store = store
        self._budget = budget
        self._report = report
        self._all_typed = all_typed
        self._rows = source.rows
        self._facts = 0
        self._expected: list[str] = []
        self._begin()

    def _begin(self) -> None:
        nothing = self._source.nothing()
        self._steps = Steps(list(self._source.names), lambda name: coded_column(name, nothing.column(name)).labels.type)

    @property
    def names(self) -> Sequence[Hashable]:  # type: ignore[override]
        """The names of the columns that are left."""
        return self._steps.names

    @property
    def rows(self) -> int:  # type: ignore[override]
        """The number of rows that are left. They are read and counted if the number is not known."""
        if self._rows is None:
            source = self.source(plain=True)
            self._rows = sum(chunk.num_rows for _, chunk in source.read([], FACT_ROWS, self._bytes()))
        return self._rows

    def kept_rows(self) -> npt.NDArray[np.bool_]:
        """Return for each row of the files whether it is left: booleans (rows,)."""
        source = self.source(plain=True)
        source.masked = True
        chunks = [chunk.column(0).to_numpy() for _, chunk in source.read([], FACT_ROWS, self._bytes())]
        return np.concatenate([np.empty(0, np.bool_), *chunks])

    def source(self, plain: bool = False) -> TreatedSource:
        """Return the files after all steps so far. plain: see `TreatedSource`."""
        return TreatedSource(self._source, self._steps, plain)

    def expect(self, names: Sequence[Hashable]) -> None:
        """Find the types of columns of text files: all texts are read now, as only they show a type."""
        if self._source.input_files.format.as_text:
            typed = self._source.names if self._all_typed else dict.fromkeys(map(str, names))
            counted = self._count_values(list(typed))
            self._source = TypedSource(self._source, {name: values.labels.type for name, values in counted.items()})
            self._begin()
            self._steps.values = {name: column_values(*values) for name, values in counted.items()}

    def ask_together(self, names: Sequence[Hashable]) -> None:
        self._expected = [str(name) for name in dict.fromkeys(names)]

    def apply(self, step: Step, said: str = "") -> None:
        self._steps.add(step, said)
        self.counts.append(StepCounts(dropped=step.drops))
        if step.removes_rows:
            self._rows = None

    def values(self, name: Hashable) -> ColumnValues:
        known = self._steps.values
        if str(name) not in known:
            more = [other for other in self._expected if other in self._steps.names and other not in known]
            counted = self._count_values(list(dict.fromkeys([str(name), *more])))
            known.update({column: column_values(*values) for column, values in counted.items()})
        return known[str(name)]

    def _count_values(self, names: list[str]) -> dict[str, ValueCounts]:
        """Return the values of columns, and how often each occurs, from one pass over the rows.

        The first column is needed: errors are raised for it. Any other column is omitted if its values do not fit into
        memory, or are no categories.
        """
        source = self.source(plain=True)
        done, memory, rows = rows_read(source, self._report), self._budget.values_bytes(), 0
        mergers = {name: ColumnMerger(name) for name in names}

        def add(name: str, column: Any) -> None:
            try:
                mergers[name].add(encode_part(name, column).values)
                if MERGING * mergers[name].values.labels.nbytes <= memory:
                    return
                if name == names[0]:
                    check_values(name, mergers[name].values, memory)
            except ColumnTypeError:
                if name == names[0]:
                    raise
            del mergers[name]

        read = (chunk for _, chunk in source.read(names, self._budget.chunk_rows, self._bytes()))
        with Workers() as workers:
            for chunk in in_chunks(read, self._budget.chunk_rows, memory):
                workers.run(add, [(name, chunk.column(name)) for name in list(mergers)])
                rows += chunk.num_rows
                done(chunk.num_rows)
        self._rows = rows
        counted = {}
        for name, merger in mergers.items():
            merger.flush()
            labels = self._steps.typed(name, merger.values.labels)
            if name not in self._steps.types:
                labels = self._source.labels(labels)
            counted[name] = merger.values._replace(labels=plain_labels(labels))
        return counted

    def codes(self, names: Sequence[Hashable], row_bytes: int = 0) -> list[CodedColumn]:
        texts = [str(name) for name in names]
        labels = [self.values(name).labels for name in texts]
        kinds = [np.dtype(code_type(len(own) + 1)) for own in labels]
        needed = self.rows * sum(kind.itemsize for kind in kinds)
        most = int(CODES_SHARE * self._budget.working)
        if row_bytes:
            needed, most = needed + self.rows * row_bytes, self._budget.working
        if needed > most:
            raise InputError(
                f"memory_limit: the treatment needs all rows at once of {', '.join(texts)}: their codes and working "
                f"memory take about {shown(needed)}, and the limit leaves {shown(most)}. Raise the limit "
                f"(--memory-limit), or {LESS_AT_ONCE}."
            )
        codes = [np.empty(self.rows, kind) for kind in kinds]
        start = 0
        for _, chunk in self.source(plain=True).read(texts, FACT_ROWS, self._bytes()):
            stop = start + chunk.num_rows
            for name, own, out in zip(texts, labels, codes, strict=True):
                out[start:stop] = with_other_labels(coded_column(name, chunk.column(name)), own).codes
            start = stop
        return [CodedColumn(own, values) for own, values in zip(codes, labels, strict=True)]

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

    def _bytes(self) -> int:
        return self._budget.values_bytes() // READS_PER_CHUNK


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
