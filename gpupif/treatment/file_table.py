"""A table of files as treated so far: steps are applied when its rows are read, within the memory limit."""

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
from .coded_columns import CodedColumn, ColumnValues, coded_column, column_values, in_order
from .steps import Chunk, RowFacts, Step, StepCounts, Steps
from .treated_source import TreatedSource, TypedSource
from .treatment import TreatedTable

# Of the working memory, what codes of all rows may take that a treatment asks for.
CODES_SHARE = 0.5
# What helps a treatment that takes too much memory, beside a higher limit.
LESS_AT_ONCE = "have the treatment look at fewer columns, or split the plan and treat what its first part makes"
# Rows of which facts are made at once, and what each score takes meanwhile: as it is read, as an array, as facts.
FACT_ROWS, SCORE_BYTES = 1 << 20, 64


class FileTable(TreatedTable):
    """A table of files; store: has its temporary files, and knows which of them a killed run has finished.

    all_typed: whether columns of text files get the types that their values have, also those that no treatment names.
    """

    def __init__(self, source: Source, store: Store, budget: Budget, report: Reporter, all_typed: bool = False) -> None:
        self.counts: list[StepCounts] = []
        self._source = source
        self._store = store
        self._budget = budget
        self._report = report
        self._all_typed = all_typed
        self._rows = source.rows
        self._asked = 0
        self._expected: list[str] = []
        self._begin()

    def _begin(self) -> None:
        nothing = self._source.nothing()
        self._steps = Steps(list(self._source.names), lambda name: coded_column(name, nothing.column(name)).labels.type)

    @property
    def names(self) -> Sequence[Hashable]:  # type: ignore[override]
        """The columns that there are still."""
        return self._steps.names

    @property
    def rows(self) -> int:  # type: ignore[override]
        """Rows as treated so far; where that is not known they are counted."""
        if self._rows is None:
            source = self.source(plain=True)
            self._rows = sum(piece.num_rows for _, piece in source.read([], FACT_ROWS, self._bytes()))
        return self._rows

    def kept_rows(self) -> npt.NDArray[np.bool_]:
        """Return by row of the files whether it is still there."""
        source = self.source(plain=True)
        source.masked = True
        pieces = [piece.column(0).to_numpy() for _, piece in source.read([], FACT_ROWS, self._bytes())]
        return np.concatenate([np.empty(0, np.bool_), *pieces])

    def source(self, plain: bool = False) -> TreatedSource:
        """The files after all steps so far; plain: see `TreatedSource`."""
        return TreatedSource(self._source, self._steps, plain)

    def expect(self, names: Sequence[Hashable]) -> None:
        """See `TreatedTable`. What texts of files of text stand for only all of them say: these are read now."""
        if self._source.found.format.as_text:
            typed = self._source.names if self._all_typed else dict.fromkeys(map(str, names))
            found = self._look(list(typed))
            self._source = TypedSource(self._source, {name: values.labels.type for name, values in found.items()})
            self._begin()
            self._steps.values = {name: column_values(*values) for name, values in found.items()}

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
            others = [one for one in self._expected if one in self._steps.names and one not in known]
            found = self._look(list(dict.fromkeys([str(name), *others])))
            known.update({one: column_values(*values) for one, values in found.items()})
        return known[str(name)]

    def _look(self, names: list[str]) -> dict[str, ValueCounts]:
        """The values of columns; of those but the first, where they do not fit into memory, or cannot be, none."""
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

        pieces = (piece for _, piece in source.read(names, self._budget.chunk_rows, self._bytes()))
        with Workers() as workers:
            for chunk in in_chunks(pieces, self._budget.chunk_rows, memory):
                workers.run(add, [(name, chunk.column(name)) for name in list(mergers)])
                rows += chunk.num_rows
                done(chunk.num_rows)
        self._rows = rows
        found = {}
        for name, merger in mergers.items():
            merger.flush()
            labels = self._steps.typed(name, merger.values.labels)
            if name not in self._steps.types:
                labels = self._source.labels(labels)
            found[name] = merger.values._replace(labels=plain_labels(labels))
        return found

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
                f"memory_limit: the codes of {', '.join(texts)}, and what is made of them, take about {shown(needed)} "
                f"for all rows at once, which this treatment asks for, and the limit leaves {shown(most)} for them. "
                f"Raise it (--memory-limit), or {LESS_AT_ONCE}."
            )
        codes = [np.empty(self.rows, kind) for kind in kinds]
        start = 0
        for _, piece in self.source(plain=True).read(texts, FACT_ROWS, self._bytes()):
            stop = start + piece.num_rows
            for name, own, out in zip(texts, labels, codes, strict=True):
                out[start:stop] = in_order(coded_column(name, piece.column(name)), own).codes
            start = stop
        return [CodedColumn(own, values) for own, values in zip(codes, labels, strict=True)]

    def facts_of(self, arrays: Mapping[str, npt.NDArray[Any]]) -> RowFacts:
        folder = self._store.fresh(f"facts-{self._number()}")
        writer = FactsWriter(folder)
        writer.write(arrays)
        return StoredFacts(folder, writer.types)

    def scores(
        self, arguments: Arguments, make: Callable[[Mapping[str, npt.NDArray[Any]]], Mapping[str, npt.NDArray[Any]]]
    ) -> RowFacts:
        name = f"facts-{self._number()}"

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
            # The next treatment plans with what is left of the limit.
            give_back_unused()
            return writer.types

        return StoredFacts(self._store.part(name), self._store.once(name, find))

    def _number(self) -> int:
        """Which of the questions that leave files this is."""
        self._asked += 1
        return self._asked

    def _bytes(self) -> int:
        return self._budget.values_bytes() // READS_PER_CHUNK


class StoredFacts(RowFacts):
    """Facts in a folder, in the order of the rows."""

    def __init__(self, folder: Path, types: Mapping[str, str]) -> None:
        self._files = {name: folder / f"{place}.bin" for place, name in enumerate(types)}
        self._types = {name: np.dtype(kind) for name, kind in types.items()}

    def read(self, chunk: Chunk) -> dict[str, npt.NDArray[Any]]:
        return {
            name: np.fromfile(file, self._types[name], chunk.rows, offset=chunk.start * self._types[name].itemsize)
            for name, file in self._files.items()
        }


class FactsWriter:
    """Writes facts to a folder, rows after rows. types: by name, known when there are some."""

    def __init__(self, folder: Path) -> None:
        self.types: dict[str, str] = {}
        self._folder = folder
        with disk_errors(folder):
            private_folder(folder)

    def write(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Facts of the next rows."""
        if not self.types:
            self.types = {name: np.asarray(array).dtype.str for name, array in arrays.items()}
            for place in range(len(arrays)):
                (self._folder / f"{place}.bin").unlink(missing_ok=True)
        with disk_errors(self._folder):
            for place, (name, kind) in enumerate(self.types.items()):
                with open_private(self._folder / f"{place}.bin", "ab") as file:
                    np.ascontiguousarray(arrays[name], kind).tofile(file)
