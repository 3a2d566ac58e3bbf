"""`gpupif.score` of a Dask frame: the graph that scores it.

Two shuffles, whatever the number of columns. In the first each partition sends its distinct rows to the parts in which
their cohorts lie whole, once for each cut that they take part in; in the second the scores come home. Before the first,
what all partitions have to know is found by tree reductions of what little each has to say: its values, counted, and
a sample of its rows. A population's rows travel with the table's, after a shuffle in which equal rows of both meet.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..attack.known_subsets import Known
from ..attack.priors import Priors
from ..attack.request import ask
from ..attack.worst_mean import FOLDS, folded_name
from ..errors import InputError
from ..frames.dask_frame import known_orders
from . import part, plan
from . import partition as home
from . import routing as routes
from .graph import Graph, ref
from .population_graph import PeopleGraph, bring_together, open_people
from .scores import DaskAnyKnownScores, DaskAttackerScores, DaskScores

if TYPE_CHECKING:
    from dask.delayed import Delayed

    from ..attack.request import Question
    from ..measures import Measure


def score_dask(
    table: Any,
    measures: tuple[Measure, ...],
    columns: Sequence[Hashable] | None,
    known: Known,
    priors: Mapping[Any, Mapping[Any, float]] | None,
    accuracies: Mapping[Any, float] | None,
    distances: Mapping[Any, Any] | None,
    missing: str,
    device: str,
    dtype: str,
    weights: Hashable = None,
    attackers: Mapping[str, Known] | None = None,
    population: Any = None,
    lacks: str = "error",
) -> DaskScores | DaskAttackerScores:
    """See `gpupif.score`. Raises what the names of columns show at once; the rest is raised when Dask computes."""
    from dask.dataframe import DataFrame

    if not isinstance(table, DataFrame):
        raise InputError(f"table: expected a Dask DataFrame, got a Dask {type(table).__name__}. Make it a frame.")
    names = list(table.columns)
    placed = distances if isinstance(distances, Mapping) else {}
    walked = [name for name in names if name not in placed] if any(one.walks for one in measures) else []
    orders = known_orders(table, walked)
    given: dict[str, Any] = {
        "measures": measures,
        "columns": columns,
        "known": known,
        "priors": priors,
        "accuracies": accuracies,
        "missing": missing,
        "dtype": dtype,
        "weights": weights,
        "attackers": attackers,
        "distances": distances,
        "orders": orders,
    }
    question = ask(names, (), **given)
    asked = question.each()
    for one in asked.values():
        # At once, for as far as the number of rows does not matter.
        one.subsets(1)
    # The same for all attackers, so that Dask reads it once for all that are computed together.
    read = table[question.read] if question.read != names else table
    people = None
    if population is not None:
        people = bring_together(read, open_people(population, question.used), question, names, lacks, device)
    if question.attackers is None:
        return _score(table, read, question, device, people)
    several = {str(name): _score(table, read, one, device, people) for name, one in asked.items()}
    return DaskAttackerScores(several, {name: one.known for name, one in question.attackers.items()})


def _score(table: Any, read: Any, question: Question, device: str, people: PeopleGraph | None) -> DaskScores:
    """Scores against one attacker; read: the table's columns that are needed, or more. people: of the population."""
    names, measures, dtype = list(table.columns), question.measures, question.dtype
    graph = Graph() if people is None else people.graph.copy()
    partitions = list(map(ref, graph.take(read)))
    count = range(len(partitions))

    if people is not None and people.read == question.read:
        encoded = list(map(ref, people.encoded))
    else:
        encoded = list(map(ref, graph.each("encode", partial(home.encode, question, device), partitions)))
    local = list(map(ref, graph.each("local", itemgetter(0), encoded)))
    indexes = list(map(ref, graph.each("index", itemgetter(1), encoded)))
    found = graph.each("values", home.totals, local)
    totals = ref(graph.tree("totals", partial(plan.add_totals, question.read), found))
    weighing: list[Any] = [None, None]
    if question.weights is not None:
        units = ref(graph.one("units", partial(plan.find_units, question, names), totals))
        counts = graph.each("weigh", partial(home.weigh, question), [units] * len(partitions), local)
        weighing = [units, ref(graph.tree("weights-of-values", plan.add_counts, counts))]
    known = None if people is None else ref(people.people)
    planned = ref(graph.one("plan", partial(plan.make_plan, question, names), totals, *weighing, known))
    plans = [planned] * len(partitions)

    rows = list(map(ref, graph.each("rows", home.global_rows, plans, local)))
    # The population's rows travel too, and with each partition those that it lacked.
    sent = [rows]
    if people is not None:
        others, added = people.sent(graph, planned)
        sent = [[*rows, *map(ref, others)], list(map(ref, added))]
    parts = range(len(sent[0]))
    sample = graph.tree("samples", routes.add_samples, graph.each("sample", routes.sample_rows, sent[0]))
    route = ref(graph.one("routes", routes.plan_routes, planned, len(partitions), len(parts), ref(sample)))
    ways = [route] * len(partitions)

    both = ([planned] * len(parts), [route] * len(parts), parts)
    there = graph.shuffle("out", graph.each("send", home.send, *both, *sent))
    scored = list(map(ref, graph.each("score", part.score_part, *both, list(map(ref, there)))))
    sizes = graph.tree("sizes", plan.add_sizes, graph.each("cohorts", itemgetter(1), scored))
    weights = graph.one("weights", plan.find_weights, planned, ref(sizes))
    given = ref(weights) if any(measure.weighted for measure in measures) else None

    homeward = graph.shuffle("home", graph.each("leave", itemgetter(0), scored))[: len(partitions)]
    labels = table._meta.columns.take([names.index(name) for name in question.targets])
    arguments = ([labels] * len(partitions), [given] * len(partitions), count, indexes, rows, list(map(ref, homeward)))
    received = list(map(ref, graph.each("receive", home.receive, plans, ways, *arguments)))
    frames = {}
    for measure in plan.outputs_of(question, people is not None):
        keys = graph.each(measure.name, itemgetter(measure.name), received)
        kind = measure.type_in(dtype)
        meta = home.frame_of(np.empty((len(question.targets), 0), kind), home.empty_index(table._meta), labels)
        frames[measure.name] = (keys, meta)
    total = graph.one("count", attrgetter("rows"), planned)
    shares = graph.one("priors", _priors, planned)
    found_weights = {"weights": weights}
    if question.any_known is not None:
        found_weights["mean-weights"] = graph.one("mean-weights", plan.find_mean_weights, planned, ref(sizes))
    # After the last task: each takes the graph as it is then.
    alone = (None, None)
    empty = pd.Series([], pd.Index(question.targets[:0], tupleize_cols=False), "float64", "weight")
    lazy = {name: graph.frame(name, keys, meta, table.divisions) for name, (keys, meta) in frames.items()}
    known_later = graph.frame("count", [total], np.int64(0), alone), graph.value(shares)
    own = [graph.frame(stage, [key], empty, alone) for stage, key in found_weights.items()]
    wanted = [measure.name for measure in plan.measures_of(question, people is not None)]
    return _scores_of(question, wanted, device, lazy, own, *known_later)


def _scores_of(
    question: Question,
    measures: Sequence[str],
    device: str,
    frames: Mapping[str, Any],
    weights: Sequence[Any],
    rows: Any,
    priors: Delayed,
) -> DaskScores:
    """Frames as scores: over attackers who know any few columns, the worst and the mean; weights: of each."""
    if question.any_known is None:
        return DaskScores(frames, question.targets, device, rows, weights[0], priors)
    worst, mean = (
        DaskScores(
            {measure: frames[folded_name(measure, what)] for measure in measures},
            *(question.targets, device, rows, own, priors, what),
        )
        for what, own in zip(FOLDS, weights, strict=True)
    )
    subsets = question.subsets(1)
    assert subsets is not None
    return DaskAnyKnownScores(worst, mean, subsets)


def _priors(planned: plan.Plan) -> Priors:
    return Priors({name: planned.prior_of[name] for name in planned.question.targets})
