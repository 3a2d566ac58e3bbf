"""`gpupif.score` of a Dask frame: the graph that scores it.

Two shuffles, whatever the number of columns. In the first each partition sends its distinct rows to the parts in which
their cohorts lie whole, once for each cut that they take part in; in the second the scores come home. Before the first,
what all partitions have to know is found by tree reductions of what little each has to say: its values, counted, and
a sample of its rows. A population's rows travel with the table's, after a shuffle in which equal rows of both meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import InputError
from ..frames.dask_frame import known_orders
from ..results.base import MEAN, WORST, RunDescription, ScoredAttacker, of_each_fold
from ..results.provenance import describe_request
from ..results.scores import Scores
from . import part, plan
from . import partition as partition_tasks
from . import routing as routes
from .explain import TableKeys
from .graph import Graph, ref
from .population_graph import PopulationGraph, build_population_graph, open_dask_population
from .scores import DaskBacking, LazyOutcome

if TYPE_CHECKING:
    from ..attack.arguments import Arguments
    from ..attack.request import ScoreRequest


def score_dask(table: Any, arguments: Arguments, device: str, origin: Mapping[str, Any] | None = None) -> Scores:
    """See `gpupif.score`. Raises what the names of columns show at once; the rest is raised when Dask computes.

    origin: where the table came from, if that is known; see `provenance`.
    """
    from dask.dataframe import DataFrame

    if not isinstance(table, DataFrame):
        raise InputError(f"table: expected a Dask DataFrame, got a Dask {type(table).__name__}. Make it a frame.")
    names, population = list(table.columns), arguments.population
    placed = arguments.distances if isinstance(arguments.distances, Mapping) else {}
    walks = any(measure.walks for measure in arguments.measures)
    orders = known_orders(table, [name for name in names if walks and name not in placed])
    request = arguments.request(names, orders=orders)
    requests = request.by_attacker()
    for one in requests.values():
        # At once, for as far as the number of rows does not matter.
        one.subsets(1)
    # The same for all attackers, so that Dask reads it once for all that are computed together.
    read = table[request.read] if request.read != names else table
    population_graph = None
    if population is not None:
        population_graph = build_population_graph(
            read, open_dask_population(population.table, request.used), request, names, population.lacks, device
        )
    outcomes = [_score(table, read, name, one, device, population_graph) for name, one in requests.items()]
    about = RunDescription(
        columns=request.targets,
        measures=plan.measures_of(request, population_graph is not None),
        dtype=request.dtype,
        device=device,
        seconds={},
        request=describe_request(
            request, origin or {"partitions": table.npartitions}, None if population_graph is None else {}
        ),
    )
    return Scores(DaskBacking(table, about, outcomes))


def _score(
    table: Any,
    read: Any,
    name: str | None,
    request: ScoreRequest,
    device: str,
    population_graph: PopulationGraph | None,
) -> LazyOutcome:
    """Scores against one attacker, of this name; read: the table's columns that are needed, or more.

    population_graph: None where there is no population.
    """
    names, measures, dtype = list(table.columns), request.measures, request.dtype
    graph = Graph() if population_graph is None else population_graph.graph.copy()
    partitions = list(map(ref, graph.take(read)))
    count = range(len(partitions))

    if population_graph is not None and population_graph.read == request.read:
        encoded = list(map(ref, population_graph.encoded))
    else:
        encoded = list(
            map(ref, graph.each("encode", partial(partition_tasks.encode_partition, request, device), partitions))
        )
    local = list(map(ref, graph.each("local", itemgetter(0), encoded)))
    indexes = list(map(ref, graph.each("index", itemgetter(1), encoded)))
    found = graph.each("values", partition_tasks.totals, local)
    totals = ref(graph.tree("totals", partial(plan.add_totals, request.read), found))
    weighing: list[Any] = [None, None]
    if request.weights is not None:
        units = ref(graph.one("units", partial(plan.find_units, request, names), totals))
        counts = graph.each(
            "weigh", partial(partition_tasks.weigh_partition, request), [units] * len(partitions), local
        )
        weighing = [units, ref(graph.tree("weights-of-values", plan.add_counts, counts))]
    known = None if population_graph is None else ref(population_graph.population)
    planned = ref(graph.one("plan", partial(plan.make_plan, request, names), totals, *weighing, known))
    plans = [planned] * len(partitions)

    rows = list(map(ref, graph.each("rows", partition_tasks.global_rows, plans, local)))
    # The population's rows travel too, and with each partition those that it lacked.
    sent = [rows]
    if population_graph is not None:
        others, added = population_graph.sent(graph, planned)
        sent = [[*rows, *map(ref, others)], list(map(ref, added))]
    parts = range(len(sent[0]))
    sample = graph.tree("samples", routes.add_samples, graph.each("sample", routes.sample_rows, sent[0]))
    route = ref(graph.one("routes", routes.plan_routes, planned, len(partitions), len(parts), ref(sample)))
    ways = [route] * len(partitions)

    both = ([planned] * len(parts), [route] * len(parts), parts)
    there = graph.shuffle("out", graph.each("send", partition_tasks.send, *both, *sent))
    scored = list(map(ref, graph.each("score", part.score_part, *both, list(map(ref, there)))))
    sizes = graph.tree("sizes", plan.add_sizes, graph.each("cohorts", itemgetter(1), scored))
    weights = graph.one("weights", plan.find_weights, planned, ref(sizes))
    given = ref(weights) if any(measure.weighted for measure in measures) else None

    homeward = graph.shuffle("home", graph.each("leave", itemgetter(0), scored))[: len(partitions)]
    labels = table._meta.columns.take([names.index(name) for name in request.targets])
    arguments = ([labels] * len(partitions), [given] * len(partitions), count, indexes, rows, list(map(ref, homeward)))
    received = list(map(ref, graph.each("receive", partition_tasks.receive, plans, ways, *arguments)))
    frames = {}
    for measure in plan.outputs_of(request, population_graph is not None):
        keys = graph.each(measure.name, itemgetter(measure.name), received)
        kind = measure.type_in(dtype)
        meta = partition_tasks.frame_of(
            np.empty((len(request.targets), 0), kind), partition_tasks.empty_index(table._meta), labels
        )
        frames[measure.name] = (keys, meta)
    folds = {"": weights}
    if request.any_known is not None:
        folds = {WORST: weights, MEAN: graph.one("mean-weights", plan.find_mean_weights, planned, ref(sizes))}
    by_fold = graph.one("weights-by-fold", partial(_by_fold, list(folds)), *map(ref, folds.values()))
    attacker = ScoredAttacker(name, tuple(request.known), request.subsets(1))
    # After the last task: each takes the graph as it is then.
    lazy = {
        f"{attacker.prefix}{output}": graph.frame(output, keys, meta, table.divisions)
        for output, (keys, meta) in frames.items()
    }
    tasks = TableKeys(graph, planned.key, [one.key for one in rows], [one.key for one in indexes])
    later = graph.frame("weights-by-fold", [by_fold], _by_fold([]), (None, None))
    return LazyOutcome(attacker, lazy, later, tasks)


def _by_fold(folds: Sequence[str], *weights: Any) -> pd.DataFrame:
    """Weights of the scored columns, by fold."""
    found = {fold: own.tolist() for fold, own in zip(folds, weights, strict=True)}
    return pd.DataFrame({fold: own or [] for fold, own in of_each_fold(found).items()}, dtype="float64")
