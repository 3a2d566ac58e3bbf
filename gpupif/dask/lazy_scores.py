"""Scores of a Dask frame: lazy frames, and results that workers compute from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from ..attack.priors import AsDict, Prior
from ..frames.open import open_frame
from ..io.formats import PARQUET
from ..io.write import output_names
from ..pipeline.shuffle_messages import message_memory, pack, partition_of_keys, rows_in, rows_to_messages, unpack
from ..pipeline.table_plan import Plan
from ..pipeline.task_graph import Result
from ..pipeline.task_resources import task_workers
from ..results.backing import (
    AttackerOutcome,
    Backing,
    CellSource,
    CountChunks,
    Explainer,
    QueryResult,
    RunDescription,
    ScoreQuery,
    ScoresDescription,
    WriteRequest,
)
from ..results.cell_selection import CellQuery
from ..results.in_memory import index_table
from ..results.packed_priors import pack_priors
from ..results.provenance import in_one_file, to_metadata
from ..results.score_outputs import CellScore, ScoredAttacker
from ..results.summary_figures import ColumnFacts
from ..rows.distinct import distinct_rows
from ..rows.partition import Rows
from ..utils.exact_sums import sum_rows
from ..utils.progress import Reporter
from .cluster_progress import compute
from .dask_graph import Graph, add_all
from .lazy_explainer import LazyExplainer, TableTasks
from .lazy_query import add_query, scores_in
from .scores_folder import write_scores
from .selected_cells import DaskCellSource

if TYPE_CHECKING:
    import dask.dataframe as dd

# The device in the metadata of files that are written before the devices are known.
EACH_WORKERS = "each worker's own"


@dataclass(frozen=True)
class LazyOutcome:
    """The scores against one attacker, from one graph.

    attacker: ScoredAttacker. The attacker.
    frames: by output. The Dask frames of scores.
    weights: Dask frame. A row for each scored column, a column for each aggregate.
    table: TableTasks. The tasks that know the rows.
    """

    attacker: ScoredAttacker
    frames: Mapping[str, dd.DataFrame]
    weights: dd.DataFrame
    table: TableTasks


class _PlanFacts(NamedTuple):
    """The facts of a plan, except the prior distributions, which may be large."""

    rows: int
    facts: list[ColumnFacts]
    devices: str


class DaskBacking(Backing):
    """Scores of the Dask frame `table`. Results are computed on request; small results are kept."""

    writes_folders = True

    def __init__(self, table: dd.DataFrame, about: RunDescription, outcomes: Sequence[LazyOutcome]) -> None:
        super().__init__(about, [outcome.attacker for outcome in outcomes])
        self._table = table
        self._outcomes = {outcome.attacker.name: outcome for outcome in outcomes}
        self._frames = {output: frame for outcome in outcomes for output, frame in outcome.frames.items()}
        self._explainers: dict[str | None, LazyExplainer] = {}
        # Computed facts, by name of the fact and of the attacker.
        self._facts: dict[tuple[str, str | None], Any] = {}

    @property
    def rows(self) -> int:
        return self._of_plan().rows

    def weights(self, attacker: ScoredAttacker, aggregate: str) -> Sequence[float]:
        found: Sequence[float] = self._known("weights", attacker.name)[aggregate].tolist()
        return found

    def distinct_rows(self, attacker: ScoredAttacker) -> int:
        """Return the number of distinct rows, see `Backing`; a shuffle of its own counts them."""
        return int(self._known("distinct", attacker.name))

    def explainer(self, attacker: ScoredAttacker) -> Explainer:
        if attacker.name not in self._explainers:
            self._explainers[attacker.name] = LazyExplainer(self._outcomes[attacker.name].table, _compute_result)
        return self._explainers[attacker.name]

    def priors(self) -> Mapping[Hashable, AsDict]:
        found: dict[Hashable, Prior] = self._known("priors", self.attackers[0].name)
        return found

    def packed_priors(self) -> dict[str, str]:
        """Return the packed priors, see `Backing`; a worker packs them."""
        found: dict[str, str] = self._known("packed", self.attackers[0].name)
        return found

    def column_facts(self) -> list[ColumnFacts]:
        return self._of_plan().facts

    def size(self) -> str:
        return f"{self._table.npartitions:,} partitions"

    def where(self) -> str:
        return "lazy"

    def frame(self, score: CellScore) -> dd.DataFrame:
        frames = [self._frames[output] for output in score.outputs]
        if len(frames) == 1:
            return frames[0]
        from dask.dataframe import map_partitions

        meta = _aggregate(score, *(frame._meta for frame in frames))
        return map_partitions(partial(_aggregate, score), *frames, meta=meta, align_dataframes=False)

    def array(self, score: CellScore) -> Any:
        return np.ascontiguousarray(scores_in(_compute(self.frame(score))))

    def row_sums(self, score: CellScore, name: str) -> Any:
        frame = self.frame(score)
        return frame.map_partitions(_row_sums, name, meta=_row_sums(frame._meta, name))

    def fold(self, score: CellScore, count: CountChunks, add: Callable[..., Any]) -> Any:
        """See `Backing`; the table is scored once, and each partition is a part of it."""
        graph = Graph()
        counted = graph.each("count", partial(_count_partition, count), graph.take(self.frame(score)))
        return self._learn([], graph, graph.tree("counted", add, counted))

    def find(self, query: ScoreQuery) -> QueryResult:
        """Answer a query, see `Backing`; the table is scored once."""
        table = self._outcomes[self.attackers[0].name].table if query.each_value else None
        graph = Graph() if table is None else table.graph.copy()
        partitions = [graph.take(self._frames[output]) for output in query.outputs]
        answer = add_query(graph, query, len(self.about.columns), partitions, table)
        facts = [("plan", self.attackers[0].name)]
        if query.figures and query.top:
            # Only summaries ask for figures and the riskiest cells at once; they also show weights and distinct rows.
            facts += [(what, attacker.name) for attacker in self.attackers for what in ("weights", "distinct")]
        result: QueryResult = self._learn(facts, graph, answer)
        return result

    def joined(self, outputs: Mapping[str, CellScore]) -> dd.DataFrame:
        return self._joined(outputs, keep_input=False)

    def _joined(self, outputs: Mapping[str, CellScore], keep_input: bool) -> dd.DataFrame:
        """Return one frame of all outputs, after the columns of the table if these are kept."""
        from dask.dataframe import map_partitions

        own = [str(name) for name in self._table.columns] if keep_input else []
        names = [*own, *output_names(list(outputs), self.about.columns, own)]
        frames = [*([self._table] if keep_input else []), *map(self.frame, outputs.values())]
        meta = _side_by_side(names, *(frame._meta for frame in frames))
        return map_partitions(_side_by_side, names, *frames, meta=meta, align_dataframes=False)

    def to_arrow(self, outputs: Mapping[str, CellScore], keep_input: bool) -> pa.Table:
        frame = open_frame(_compute(self._joined(outputs, keep_input)))
        table, labels = frame.arrow(), index_table(frame)
        if labels is None:
            return table
        for name, column in zip(labels.column_names, labels.columns, strict=True):
            table = table.append_column(name, column)
        return table.replace_schema_metadata(labels.schema.metadata)

    def cells(self, query: CellQuery) -> CellSource:
        table = self._outcomes[self.attackers[0].name].table
        hooks = (_compute_result, partial(self._write_folder, asked=query.asked))
        return DaskCellSource(query, self.about.columns, table, self._table._meta, self._frames, *hooks)

    def write(self, writing: WriteRequest) -> None:
        """Write the scores to a folder of Parquet files, see `Backing`.

        Each file describes the request; the last file also has the results.
        """
        frame = self._joined(writing.outputs, writing.keep_input)
        attackers, options = writing.attackers, writing.options
        self._write_folder(frame, writing.path, writing.overwrite, options, writing.describe, attackers=attackers)
        # Progress is reported once, for all rows.
        writing.done(self.rows)

    def _write_folder(
        self,
        frame: dd.DataFrame,
        path: str | os.PathLike[str],
        overwrite: bool,
        options: Mapping[str, Any],
        describe: Callable[[bool], ScoresDescription],
        graph: Graph | None = None,
        result: Result | None = None,
        attackers: Sequence[ScoredAttacker] = (),
        asked: Mapping[str, Any] | None = None,
    ) -> Any:
        """Write a frame to a folder; return the result of a task of a graph that is computed with it, if there is one.

        attackers: the attackers whose scores the files have. Default: all.
        asked: mapping. The selection of cells in place of all scores, see `Selection`. Default None.
        """
        codec = PARQUET.codec(Path(path))
        options = {"compression": None if codec == "none" else codec, **options}
        # The devices of workers are not known when files are written.
        about = replace(self.about, device=EACH_WORKERS) if self.about.device == "auto" else self.about
        outcomes = [AttackerOutcome(attacker, {}, None) for attacker in attackers or self.attackers]
        said = to_metadata(in_one_file(ScoresDescription(about, outcomes, cells=asked)))
        facts = [(what, self.attackers[0].name) for what in ("plan", "packed")]
        facts += [("weights", attacker.name) for attacker in self.attackers]
        results: list[Any] = []
        write_scores(
            frame,
            path,
            overwrite,
            {**options, "custom_metadata": {**options.get("custom_metadata", {}), **said}},
            # Facts for the description are computed together with the files.
            lambda written: results.append(self._learn(facts, graph, result, written)),
            # No summaries: they need all scores at once, so readers make them on request.
            lambda: describe(False),
        )
        return results[0]

    def persist(self, **options: Any) -> DaskBacking:
        import dask

        lazy = {name: (dict(one.frames), one.weights) for name, one in self._outcomes.items()}
        (kept,) = dask.persist(lazy, **options)
        outcomes = [replace(one, frames=kept[name][0], weights=kept[name][1]) for name, one in self._outcomes.items()]
        persisted = DaskBacking(self._table, self.about, outcomes)
        persisted._facts = self._facts
        return persisted

    def _of_plan(self) -> _PlanFacts:
        found: _PlanFacts = self._known("plan", self.attackers[0].name)
        return found

    def _known(self, what: str, attacker: str | None) -> Any:
        if (what, attacker) not in self._facts:
            self._learn([(what, attacker)])
        return self._facts[what, attacker]

    def _learn(
        self,
        facts: Sequence[tuple[str, str | None]],
        graph: Graph | None = None,
        result: Result | None = None,
        written: Any = None,
    ) -> Any:
        """Compute facts that are not known yet, and with them the result of a task of a graph; return the result.

        written: lazy value that is computed with them. Default None.
        """
        from dask import delayed

        graph = graph or Graph()
        missing = [fact for fact in facts if fact not in self._facts]
        several = [self._fact(graph, number, *fact) for number, fact in enumerate(missing)]
        several += [] if result is None else [result]
        together = graph.value(graph.all("together", several))
        found = _compute(together if written is None else delayed(_first)(together, written))
        self._facts.update(zip(missing, found, strict=False))
        if ("plan", attacker := self.attackers[0].name) in missing:
            self.about = replace(self.about, device=self._facts["plan", attacker].devices)
        return found[-1] if result is not None else None

    def _fact(self, graph: Graph, number: int, what: str, attacker: str | None) -> Result:
        """Add the task that computes a fact; return its result."""
        outcome = self._outcomes[attacker]
        if what == "weights":
            return graph.take(outcome.weights)[0]
        table = outcome.table
        graph.tasks.update(table.graph.tasks)
        if what in _OF_PLAN:
            return graph.one("facts", _OF_PLAN[what], list(self.about.columns), table.plan, number=number)
        partitions = range(len(table.rows))
        sent = graph.each(f"distinct-{number}", _send_distinct, len(partitions), table.plan, partitions, table.rows)
        arrived = graph.shuffle(f"meet-{number}", sent, len(partitions))
        counts = graph.each(f"count-distinct-{number}", _count_distinct, table.plan, partitions, arrived)
        return graph.tree(f"distinct-rows-{number}", add_all, counts)


def _compute(lazy: Any) -> Any:
    with Reporter() as report:
        return compute(lazy, report)


def _compute_result(graph: Graph, result: Result) -> Any:
    return _compute(graph.value(result))


def _first(result: Any, _: Any) -> Any:
    return result


def _facts_of(columns: Sequence[Hashable], plan: Plan) -> _PlanFacts:
    return _PlanFacts(plan.rows, [ColumnFacts.from_prior(plan.prior_of[name]) for name in columns], plan.devices)


def _priors_of(columns: Sequence[Hashable], plan: Plan) -> dict[Hashable, Prior]:
    return {name: plan.prior_of[name] for name in columns}


def _pack_priors(columns: Sequence[Hashable], plan: Plan) -> dict[str, str]:
    return pack_priors(_priors_of(columns, plan))


# The facts that follow from a plan.
_OF_PLAN: dict[str, Callable[[Sequence[Hashable], Plan], Any]] = {
    "plan": _facts_of,
    "priors": _priors_of,
    "packed": _pack_priors,
}


def _send_distinct(partitions: int, plan: Plan, source: int, rows: Rows) -> pd.DataFrame:
    """Return the messages that bring equal rows of all partitions together, to count each distinct row once."""
    to = partition_of_keys(rows.keys, plan.layout, plan.layout.fields, partitions)
    with task_workers(message_memory(rows)) as workers:
        return pack(rows_to_messages(Rows(rows.keys), to, partitions, source, 0, workers))


def _count_distinct(plan: Plan, partition: int, frame: pd.DataFrame) -> int:
    rows = rows_in(unpack(frame, partition), plan.layout.words)
    if not len(rows.keys):
        return 0
    with task_workers() as workers:
        return len(distinct_rows(rows, len(rows.keys), workers).rows.keys)


def _scores_in(frame: Any) -> Any:
    """Return the scores (columns, rows) of a frame, on the host or its GPU."""
    return (frame.values if hasattr(frame, "to_pandas") else frame.to_numpy()).T


def _count_partition(count: CountChunks, frame: Any) -> Any:
    with task_workers() as workers:
        return count([scores_in(frame)], workers)


def _aggregate(score: CellScore, *frames: Any) -> Any:
    """Return the worst, or the mean, of the frames of several outputs."""
    first = open_frame(frames[0])
    with first.active():
        arrays = {output: _scores_in(frame) for output, frame in zip(score.outputs, frames, strict=True)}
        return first.wrap(score.compute(arrays), first.names)


def _row_sums(frame: Any, name: str) -> Any:
    """Return the sum of each row, rounded once; see `sum_rows`."""
    columns = [frame.iloc[:, place].astype(np.float64) for place in range(frame.shape[1])]
    sums = sum_rows(column.values for column in columns)
    return type(columns[0])(sums, index=frame.index, name=name)


def _side_by_side(names: Sequence[str], *frames: Any) -> Any:
    """Join the columns of several frames with the same rows in one frame, under new names."""
    import dask.dataframe as dd

    joined = dd.methods.concat(list(frames), axis=1)
    joined.columns = pd.Index(names)
    return joined
