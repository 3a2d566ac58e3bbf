"""The ways to run one question: in memory, from files to files, on Dask, on a device. All give the same bits.

What a new feature has to do in every way is one test with the fixture `way` (tests/conftest.py):

    def test_sizes(way):
        found = way.score(table, "class_size", known=["age"])
        assert_same_outcomes(found, MEMORY.score(table, "class_size", known=["age"]))

Features of attacks have it already: tests/attack/test_combined_attacks.py.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.gpu.status import cuda_status
from tests.helpers.gpu.without_gpu import WITHOUT_GPU
from tests.helpers.pieces import assert_same_summaries, in_pieces, nothing_left, write_parts


class Pieces(NamedTuple):
    """The sizes into which tables are cut.

    edges: tuple of float. The rows at which files or partitions begin, as shares of all rows.
    chunk_rows: int. The rows that are read at once.
    partition_rows: int. The rows that are scored at once, few enough that a small table has several partitions.
    heavy: float. On Dask the share of a partition's rows above which the rows of one key are cut finer.
    """

    edges: tuple[float, ...] = (0.4, 0.4)
    chunk_rows: int = 7
    partition_rows: int = 5
    heavy: float = 0.5

    def places(self, table: pd.DataFrame) -> list[int]:
        """Rows of a table at which files or partitions begin."""
        return [int(edge * len(table)) for edge in sorted(self.edges)]


class Outcome(NamedTuple):
    """What a run gives, in memory.

    frame: all scores, columns named <measure>_<column> as files have them, rows in order. weights, priors: by attacker
    ("" for one without a name) and by aggregate ("" or "mean"). summaries: likewise.
    """

    frame: pd.DataFrame
    weights: dict[tuple[str, str], dict[Any, float]]
    priors: dict[tuple[str, str], dict[Any, Any]]
    summaries: dict[tuple[str, str], Any]


def by_attacker(scores: Any) -> dict[tuple[str, str], Any]:
    """Scores by attacker and aggregate, see `Outcome`."""
    each = {name: scores.against(name) for name in scores.attackers} or {"": scores}
    means = {(name, "mean"): one.mean for name, one in each.items() if one.subsets is not None}
    return {(name, ""): one for name, one in each.items()} | means


def outcome(frame: pd.DataFrame, scores: Any) -> Outcome:
    """Of scores that are computed, all of them in a frame."""
    each = by_attacker(scores)
    return Outcome(
        frame,
        {name: dict(one.weights) for name, one in each.items()},
        {name: dict(one.priors) for name, one in each.items()},
        {name: without_index(one.summary()) for name, one in each.items()},
    )


def without_index(summary: Any) -> Any:
    """A summary whose riskiest cells have no labels of rows, which pandas frames have."""
    return replace(summary, top=summary.top.drop(columns="index", errors="ignore"))


class TreatedOutcome(NamedTuple):
    """What treating gives, in memory: the table, and the record."""

    table: pd.DataFrame
    record: Any


@dataclass(frozen=True)
class Way:
    """A way to run. name: as tests say it. run: scores a pandas frame, with the arguments of `gpupif.score`.

    run_treat: treats one, with the arguments of `gpupif.treat`.

    cells: given, what `Scores.cells` takes: the frame of these cells in place of the outcome.
    """

    name: str
    run: Callable[..., Any]
    run_treat: Callable[..., TreatedOutcome]

    def treat(self, table: pd.DataFrame, plan: Any, pieces: Pieces | None = None, **options: Any) -> TreatedOutcome:
        """Treat a table as `gpupif.treat` does; what that raises, wherever in the run."""
        return self.run_treat(table, plan, pieces or Pieces(), **options)

    def score(
        self, table: pd.DataFrame, measures: Any = ("cig", "csf"), pieces: Pieces | None = None, **options: Any
    ) -> Any:
        """Score a table; an `Outcome`, or a frame of cells.

        options: further arguments of `gpupif.score`; a population is a pandas frame too, or a `gpupif.Population` of
        one, and goes the same way as the table. Raises what `gpupif.score` raises, wherever in the run that is.
        """
        return self.run(table, measures, pieces or Pieces(), **options)


def with_population(options: dict[str, Any], move: Callable[[Any], Any]) -> dict[str, Any]:
    """The options with the table of a population, where there is one, as `move` makes it."""
    population = options.get("population")
    if population is None:
        return options
    lacks = isinstance(population, gpupif.Population)
    moved = gpupif.Population(move(population.table), population.lacks) if lacks else move(population)
    return options | {"population": moved}


def in_memory(
    table: pd.DataFrame, measures: Any, _: Pieces, device: str = "cpu", cells: Any = None, **options: Any
) -> Any:
    """Scored where it lies."""
    with gpupif.config(device=device):
        scores = gpupif.score(table, measures, **options)
        if cells is not None:
            return scores.cells(**cells).to_pandas()
        return outcome(scores.to_arrow().to_pandas(ignore_metadata=True), scores)


def from_file(table: pd.DataFrame, measures: Any, _: Pieces, cells: Any = None, **options: Any) -> Any:
    """Written to a Parquet file, and scored in memory from there: scores stay with distinct rows at first."""
    with tempfile.TemporaryDirectory() as place:

        def write(name: str, rows: pd.DataFrame) -> Path:
            rows.to_parquet(Path(place) / f"{name}.parquet", index=False)
            return Path(place) / f"{name}.parquet"

        options = with_population(options, lambda people: write("people", people))
        with gpupif.config(device="cpu"):
            scores = gpupif.score(write("in", table), measures, **options)
            if cells is not None:
                return scores.cells(**cells).to_pandas()
        return outcome(scores.to_arrow().to_pandas(ignore_metadata=True), scores)


def in_files(table: pd.DataFrame, measures: Any, pieces: Pieces, cells: Any = None, **options: Any) -> Any:
    """Written to Parquet files, scored with next to no memory to a folder, or a file of cells, and read from there."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)

        def write(name: str, rows: pd.DataFrame) -> Path:
            return write_parts(folder / name, rows, pieces.places(rows))

        write("in", table)
        options = with_population(options, lambda people: write("people", people))
        # Rows that match many others have to fit into memory in one place, beside those of a population.
        rows = sum(pq.read_metadata(file).num_rows for file in folder.rglob("*.parquet"))
        partition_rows = rows if options.get("missing") == "wildcard" else pieces.partition_rows
        with in_pieces(pieces.chunk_rows, partition_rows), gpupif.config(device="cpu", memory_limit="16GiB"):
            output = folder / ("out" if cells is None else "out.parquet")
            scores = gpupif.score_files(folder / "in", output, measures, **options, **(cells or {}))
        assert nothing_left(folder)
        if cells is not None:
            return scores.cells().to_pandas()
        frame = pa.concat_tables(map(pq.read_table, scores.files)).to_pandas(ignore_metadata=True)
        return outcome(frame, scores)


def on_dask(table: pd.DataFrame, measures: Any, pieces: Pieces, cells: Any = None, **options: Any) -> Any:
    """Cut into partitions, scored and brought together."""
    import dask

    from tests.helpers.dask_frames import cut

    options = with_population(options, lambda people: cut(people, pieces.places(people)))
    with pytest.MonkeyPatch.context() as patch, dask.config.set(scheduler="sync"):
        patch.setattr("gpupif.pipeline.partition_routes.HEAVY", pieces.heavy)
        with gpupif.config(device="cpu"):
            scores = gpupif.score(cut(table, pieces.places(table)), measures, **options)
        if cells is not None:
            return scores.cells(**cells).to_pandas().reset_index(drop=True)
        kept = scores.persist()
        return outcome(kept.frame().compute().reset_index(drop=True), kept)


def on_device(table: pd.DataFrame, measures: Any, pieces: Pieces, **options: Any) -> Any:
    """Scored by the CUDA engine: on a GPU, or on what stands in for one."""
    return in_memory(table, measures, pieces, device="auto" if WITHOUT_GPU else "cuda", **options)


def treat_in_memory(
    table: pd.DataFrame, plan: Any, pieces: Pieces, device: str = "cpu", **options: Any
) -> TreatedOutcome:
    """Treated where it lies, by threads that have a few rows each."""
    with pytest.MonkeyPatch.context() as patch, gpupif.config(device=device):
        patch.setattr("gpupif.treatment.memory_table.CHUNK_ROWS", pieces.chunk_rows)
        done = gpupif.treat(table, plan, **options)
    return TreatedOutcome(done.table, done.record)


def treat_from_file(table: pd.DataFrame, plan: Any, _: Pieces, **options: Any) -> TreatedOutcome:
    """Written to a Parquet file, and treated in memory from there."""
    with tempfile.TemporaryDirectory() as place, gpupif.config(device="cpu"):
        table.to_parquet(Path(place) / "in.parquet", index=False)
        done = gpupif.treat(Path(place) / "in.parquet", plan, **options)
    return TreatedOutcome(done.table, done.record)


def treat_in_files(table: pd.DataFrame, plan: Any, pieces: Pieces, **options: Any) -> TreatedOutcome:
    """Written to Parquet files, treated a few rows at a time, and read from there."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_parts(folder / "in", table, pieces.places(table))
        before = {file: file.read_bytes() for file in (folder / "in").iterdir()}
        with (
            pytest.MonkeyPatch.context() as patch,
            in_pieces(pieces.chunk_rows, len(table)),
            gpupif.config(device="cpu", memory_limit="16GiB"),
        ):
            patch.setattr("gpupif.treatment.file_table.CHUNK_ROWS", pieces.chunk_rows)
            done = gpupif.treat_files(folder / "in", folder / "out", plan, **options)
        assert nothing_left(folder)
        assert {file: file.read_bytes() for file in (folder / "in").iterdir()} == before
        assert len(done.files) == len(before)
        return TreatedOutcome(pa.concat_tables(map(pq.read_table, done.files)).to_pandas(), done.record)


def treat_on_dask(table: pd.DataFrame, plan: Any, pieces: Pieces, **options: Any) -> TreatedOutcome:
    """Cut into partitions, treated and brought together."""
    import dask

    from tests.helpers.dask_frames import cut

    with dask.config.set(scheduler="sync"), gpupif.config(device="cpu"), pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpupif.treatment.dask_partition.FIRST_ROWS", pieces.partition_rows)
        done = gpupif.treat(cut(table, pieces.places(table)), plan, **options)
        found = done.table.compute()
        assert found.dtypes.tolist() == done.table.dtypes.tolist()
    return TreatedOutcome(found, done.record)


def treat_on_device(table: pd.DataFrame, plan: Any, pieces: Pieces, **options: Any) -> TreatedOutcome:
    """Scores that treatments ask for made by the CUDA engine."""
    return treat_in_memory(table, plan, pieces, device="auto" if WITHOUT_GPU else "cuda", **options)


MEMORY = Way("memory", in_memory, treat_in_memory)
FILE = Way("file", from_file, treat_from_file)
FILES = Way("files", in_files, treat_in_files)
DASK = Way("dask", on_dask, treat_on_dask)
DEVICE = Way("device", on_device, treat_on_device)
# Those beside the first, whose bits all others have to give, as parameters of tests. With what stands in for a GPU only
# the device: the others compute on the CPU there too, as without it.
OTHERS = [] if WITHOUT_GPU else [pytest.param(way, id=way.name) for way in (FILE, FILES)]
OTHERS += [] if WITHOUT_GPU else [pytest.param(DASK, id=DASK.name, marks=pytest.mark.dask)]
if WITHOUT_GPU or cuda_status().usable:
    OTHERS.append(pytest.param(DEVICE, id=DEVICE.name, marks=pytest.mark.gpu))


def assert_same_outcomes(found: Outcome, expected: Outcome) -> None:
    """The same scores to the last bit, with their types and names, and the same of all that is said beside them."""
    assert list(found.frame.columns) == list(expected.frame.columns)
    assert found.frame.dtypes.tolist() == expected.frame.dtypes.tolist()
    for name in expected.frame:
        assert found.frame[name].to_numpy().tobytes() == expected.frame[name].to_numpy().tobytes(), name
    assert found.weights == expected.weights
    assert found.priors == expected.priors
    for name, summary in found.summaries.items():
        assert_same_summaries(summary, expected.summaries[name])


def assert_same_treated(found: TreatedOutcome, expected: TreatedOutcome) -> None:
    """The same values of the same columns and rows, and the same of what was done to them."""
    assert list(found.table.columns) == list(expected.table.columns)
    for name in expected.table:
        assert plain(found.table[name]) == plain(expected.table[name]), name
    assert found.record.treatments == expected.record.treatments
    for own in ("rows", "rows_removed", "changed", "suppressed"):
        assert getattr(found.record, own) == getattr(expected.record, own), own


def plain(column: Any) -> list[Any]:
    """The values of a column, whatever its type holds them in; None for missing ones."""
    return [None if value is None or value is pd.NA or value != value else value for value in column.tolist()]
