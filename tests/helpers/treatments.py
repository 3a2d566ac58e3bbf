"""Treatments for tests of the mechanism: one of each kind of what a treatment may ask and do."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gpupif.attack.arguments import Arguments
from gpupif.errors import InputError
from gpupif.treatment.coded_columns import CodedColumn, ColumnValues, relabeled
from gpupif.treatment.steps import Chunk, RowFacts, Step
from gpupif.treatment.treatment import Mapper, Tools, TreatedTable, Treatment, ValueMap


@dataclass(frozen=True)
class Bins(ValueMap):
    """Numbers as text of the bin that they are in; asks nothing of the table."""

    do: ClassVar[str] = "test_bins"
    width: int = 10

    def check(self) -> None:
        if self.width < 1:
            raise InputError("width: too narrow.")

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        def bins(labels: pa.Array) -> pa.Array:
            low = (pc.floor(pc.divide(labels.cast(pa.float64()), self.width)).cast(pa.int64())).to_pylist()
            return pa.array([f"{one * self.width}-{(one + 1) * self.width - 1}" for one in low], pa.string())

        return bins


@dataclass(frozen=True)
class RareAway(ValueMap):
    """Values of few rows become missing; asks for the values."""

    do: ClassVar[str] = "test_rare_away"
    below: int = 3

    def check(self) -> None:
        pass

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        values = table.values(self.column)
        kept = values.labels.filter(pa.array(values.counts >= self.below))

        def away(labels: pa.Array) -> pa.Array:
            return pc.if_else(pc.is_in(labels, kept), labels, pa.scalar(None, labels.type))

        return away


@dataclass(frozen=True)
class Shifted(ValueMap):
    """Whole numbers plus one: they stay what they are."""

    do: ClassVar[str] = "test_shifted"
    by: int = 1

    def check(self) -> None:
        pass

    def mapper(self, table: TreatedTable, tools: Tools) -> Mapper:
        return lambda labels: pc.add(labels, self.by)


@dataclass(frozen=True)
class Gone(Treatment):
    """Columns go."""

    do: ClassVar[str] = "test_gone"
    columns: tuple[Hashable, ...]

    def check(self) -> None:
        pass

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        return GoneStep(self.columns)


@dataclass(frozen=True)
class GoneStep(Step):
    columns: tuple[Hashable, ...]

    @property
    def drops(self) -> tuple[Hashable, ...]:
        return self.columns

    def apply(self, chunk: Chunk) -> None:
        for name in self.columns:
            chunk.drop(name)


@dataclass(frozen=True)
class Drawn(Treatment):
    """Random-like: a cell becomes one of the values by the number of its row; says what it was done with."""

    do: ClassVar[str] = "test_drawn"
    column: Hashable
    every: int = 3

    def check(self) -> None:
        pass

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        values = table.values(self.column)
        return DrawnStep(self.column, self.every, values.labels, len(values.labels), tools.number)


@dataclass(frozen=True)
class DrawnStep(Step):
    column: Hashable
    every: int
    labels: pa.Array
    size: int
    number: int

    @property
    def writes(self) -> tuple[Hashable, ...]:
        return (self.column,)

    def apply(self, chunk: Chunk) -> None:
        column = chunk[self.column]
        rows = np.arange(chunk.start, chunk.start + chunk.rows)
        place = pc.index_in(column.labels, self.labels).fill_null(self.size).to_numpy(zero_copy_only=False)
        codes = np.append(place, self.size)[column.codes]
        drawn = ((rows * 7 + self.number) % 11) % max(1, self.size)
        hit = (rows % self.every == 0) & (codes < self.size)
        chunk[self.column] = CodedColumn(np.where(hit, drawn, codes), self.labels)

    def record(self) -> dict[str, Any]:
        return {"probability": 1 / self.every, "values": self.size}

    def revealing(self) -> list[str]:
        return ["values"]

    def estimates(self, column: Hashable, values: ColumnValues) -> pd.DataFrame | None:
        if column != self.column:
            return None
        return pd.DataFrame({"value": values.labels.to_pylist(), "estimate": values.counts / values.counts.sum()})


@dataclass(frozen=True)
class RiskyAway(Treatment):
    """Cells of a column with much CIG become missing, or their rows go: facts made of scores."""

    do: ClassVar[str] = "test_risky_away"
    column: Hashable
    above: float = 1.0
    rows: bool = False
    known: tuple[Hashable, ...] = ()

    def check(self) -> None:
        pass

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        def make(scores: Mapping[str, Any]) -> Mapping[str, Any]:
            return {"risky": scores[f"cig_{self.column}"] > self.above}

        return RiskyStep(
            self.column,
            self.rows,
            table.scores(Arguments.from_user("cig", [self.column], known=list(self.known)), make),
        )


@dataclass(frozen=True)
class RiskyStep(Step):
    column: Hashable
    rows: bool
    facts: RowFacts

    @property
    def writes(self) -> tuple[Hashable, ...]:
        return () if self.rows else (self.column,)

    @property
    def removes_rows(self) -> bool:
        return self.rows

    def apply(self, chunk: Chunk) -> None:
        risky = np.asarray(self.facts.read(chunk)["risky"])
        if self.rows:
            chunk.keep_rows(~risky)
            return
        column = chunk[self.column]
        chunk[self.column] = CodedColumn(np.where(risky, len(column.labels), column.codes), column.labels)


@dataclass(frozen=True)
class Swapped(Treatment):
    """The values of a column move by a few rows: codes of all rows asked for, and facts of arrays."""

    do: ClassVar[str] = "test_swapped"
    column: Hashable
    by: int = 3

    def check(self) -> None:
        pass

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        [column] = table.codes([self.column])
        facts = table.facts_of({"moved": np.roll(column.codes, self.by)})
        return SwappedStep(self.column, facts, column.labels)


@dataclass(frozen=True)
class SwappedStep(Step):
    column: Hashable
    facts: RowFacts
    labels: pa.Array

    @property
    def writes(self) -> tuple[Hashable, ...]:
        return (self.column,)

    def apply(self, chunk: Chunk) -> None:
        chunk[self.column] = CodedColumn(np.asarray(self.facts.read(chunk)["moved"]), self.labels)


@dataclass(frozen=True)
class Noisy(Treatment):
    """Numbers plus something that every row has of its own: labels differ from piece to chunk."""

    do: ClassVar[str] = "test_noisy"
    column: Hashable

    def check(self) -> None:
        pass

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        return NoisyStep(self.column)


@dataclass(frozen=True)
class NoisyStep(Step):
    column: Hashable

    @property
    def writes(self) -> tuple[Hashable, ...]:
        return (self.column,)

    def apply(self, chunk: Chunk) -> None:
        column = chunk[self.column]
        values = np.append(column.labels.cast(pa.float64()).to_numpy(zero_copy_only=False), np.nan)[column.codes]
        noisy = values + (np.arange(chunk.start, chunk.start + chunk.rows) % 5) / 8
        rows = CodedColumn(np.arange(chunk.rows), pa.array(np.arange(chunk.rows)))
        chunk[self.column] = relabeled(rows, pa.array(noisy, from_pandas=True))
