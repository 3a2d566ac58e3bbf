"""Disclosure risk of a Dask frame: the graph that finds it.

One shuffle: each partition sends its distinct rows, with their counts, to the parts in which their equivalence classes
lie whole. Before it, values are counted by a tree reduction; after it, what parts have found is put together by
another, and, for recursive (c,l)-diversity, the parts are looked at a second time. With a population there is another
shuffle, in which its rows meet the table's. Only what follows from all of that comes to the client.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..attack.population import Met
from ..dask import partition as home
from ..dask import routing as routes
from ..dask.graph import Graph, ref
from ..dask.parcels import unpack
from ..dask.plan import People, Plan, Totals, add_totals, make_plan
from ..dask.population import Lacking, add_lacking, find_lacking, settle
from ..dask.population_graph import meet_population, open_people
from ..dask.watch import compute
from ..dask.worker import task_engine, task_workers, tell
from ..encoding.merge import Values
from ..engines.block_scoring import unpack_keys
from ..errors import InputError
from ..frames.dask_frame import known_orders
from ..utils.progress import Reporter
from .cells import about_distance, ask_risk, check_columns
from .findings import ByAttribute, Stopwatch, combine
from .journalist import ClassesThere
from .search import Assessed, Search, Second

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from ..attack.request import Question
    from ..dask.partition import Local
    from ..dask.routing import Routes
    from ..engines.base import Job
    from .request import Asked
    from .with_population import Beside


def assess_dask(table: Any, asked: Asked, most: int, beside: Beside | None = None) -> Assessed:
    """`gpupif.disclosure.assess.assess` of a Dask frame; computes at once."""
    from dask.dataframe import DataFrame

    if not isinstance(table, DataFrame):
        raise InputError(f"table: expected a Dask DataFrame, got a Dask {type(table).__name__}. Make it a frame.")
    asked.check(list(table.columns))
    walked = asked.sensitive if asked.distance is None and any(one.cell == "emd" for one in asked.models) else []
    orders = known_orders(table, walked)
    question = ask_risk(asked, orders)
    people = None if beside is None else open_people(beside.population, asked.quasi_identifiers)
    graph = Graph()
    partitions = list(map(ref, graph.take(table[asked.columns])))
    encoded = Encoded.build(graph, partitions, list(table.columns), asked, question)
    last = _build(graph, encoded, most)
    if beside is not None:
        last = graph.one("with-classes", with_classes, ref(last), _meet(graph, encoded, people, beside.lacks))
    watch = Stopwatch()
    with Reporter() as report, watch("compute"):
        found: Assessed = compute(graph.value(last), report)
    return replace(found, seconds=watch.seconds)


class Encoded(NamedTuple):
    """The table's partitions, and what of them is known together, as arguments of tasks. names: of all its columns."""

    asked: Asked
    question: Question
    names: list[Hashable]
    local: Sequence[Any]
    totals: Any

    @classmethod
    def build(
        cls, graph: Graph, partitions: Sequence[Any], names: list[Hashable], asked: Asked, question: Question
    ) -> Encoded:
        """Add the tasks that encode."""
        local = list(map(ref, graph.each("encode", partial(encode, asked, question), partitions)))
        found = graph.each("values", home.totals, local)
        return cls(asked, question, names, local, ref(graph.tree("totals", partial(add_totals, question.read), found)))


def _build(graph: Graph, encoded: Encoded, most: int) -> Any:
    """Build the tasks; returns the key of that which returns what is found."""
    asked, question, names, local, totals = encoded
    count = range(len(local))
    planned = ref(graph.one("plan", partial(plan_risk, asked, question, names), totals))
    search = ref(graph.one("search", partial(plan_search, asked, question, most), planned))
    plans = [planned] * len(local)

    rows = list(map(ref, graph.each("rows", home.global_rows, plans, local)))
    sample = graph.tree("samples", routes.add_samples, graph.each("sample", routes.sample_rows, rows))
    route = ref(graph.one("routes", routes.plan_routes, planned, len(local), len(local), ref(sample)))
    ways = [route] * len(local)

    there = list(map(ref, graph.shuffle("out", graph.each("send", home.send, plans, ways, count, rows))))
    parts = (plans, [search] * len(local), ways, count, there)
    first = ref(graph.tree("findings", partial(combine, most), graph.each("find", find_part, *parts)))
    second = ref(graph.one("second", Search.second, search, first))
    again: Any = ByAttribute()
    if asked.may_look_again:
        several = graph.each("find-again", find_part_again, [second] * len(local), *parts)
        again = ref(graph.tree("findings-again", partial(combine, most), several))
    return graph.one("conclude", conclude, planned, search, first, second, again)


def _meet(graph: Graph, encoded: Encoded, population: Any, lacks: str) -> Any:
    """Build the tasks that find the classes in the population; what they find, as an argument of others."""
    asked, names = encoded.asked, encoded.names
    known = asked.quasi_identifiers
    # Only by what is known rows are compared.
    question = replace(encoded.question, used=known, targets=[], known=known)
    totals = ref(graph.one("totals-known", partial(first_columns, len(known)), encoded.totals))
    meeting = meet_population(graph, encoded.local, totals, population, question, names, asked.device)
    several = [meeting.joined] * len(meeting.met)
    compared = list(map(ref, graph.each("compare", compare_classes, several, meeting.met)))
    lacking = ref(graph.tree("lacking", add_lacking, graph.each("lacks", itemgetter(0), compared)))
    settled = ref(graph.one("settle", partial(settle, lacks), meeting.joined, lacking))
    there = ref(graph.tree("classes", ClassesThere.total, graph.each("classes-there", itemgetter(1), compared)))
    # After what may refuse them.
    return ref(graph.one("classes-settled", _second_of, settled, there))


def first_columns(known: int, totals: Totals) -> Totals:
    """Totals of so many columns of a table, those that come first."""
    return totals._replace(values=totals.values[:known], first_missing=totals.first_missing[:known])


def compare_classes(people: People, met: Met) -> tuple[Lacking, ClassesThere]:
    """Of the rows that met in a part what the population lacks, and the classes of the table."""
    _, lacking = find_lacking(people, met)
    return lacking, ClassesThere.of(met.sampled, met.there)


def with_classes(found: Assessed, there: ClassesThere) -> Assessed:
    """What is found with the classes in the population."""
    return replace(found, there=there)


def _second_of(_: Any, second: Any) -> Any:
    return second


def encode(asked: Asked, question: Question, partition: Any) -> Local:
    """The distinct rows of a partition; where there is no sensitive attribute, with a constant one."""
    local, _ = home.encode(replace(question, used=asked.columns), asked.device, partition)
    if asked.sensitive:
        return local
    rows = int(local.times.sum())
    constant = Values(pa.array([0][:rows], pa.int64()), np.array([rows][:rows]), 0)
    return local._replace(
        codes=[*local.codes, np.zeros(len(local.times), np.uint8)],
        values=[*local.values, constant],
        first_missing=[*local.first_missing, -1],
    )


def plan_risk(asked: Asked, question: Question, names: list[Hashable], totals: Totals) -> Plan:
    """What all partitions have to know; raises InputError, DeviceError; warns."""
    with about_distance():
        plan = make_plan(question, names, totals, tell=lambda *_: None)
    check_columns([plan.prior_of[name].column for name in asked.columns], plan.rows, asked, tell)
    return plan


def plan_search(asked: Asked, question: Question, most: int, plan: Plan) -> Search:
    """What is looked for in parts."""
    columns = [plan.prior_of[name].column for name in question.used]
    return Search(asked, columns, replace(plan.job, extremes_only=True), plan.rows, most)


def find_part(plan: Plan, search: Search, ways: Routes, part: int, frame: pd.DataFrame) -> ByAttribute:
    """What is found in a part."""
    engine = task_engine(plan.device)
    with task_workers() as workers:
        found = [
            search.find(engine, job, Reporter(visible=False), workers, Stopwatch())
            for job in _jobs(plan, search, ways, part, frame)
        ]
    return combine(search.most, *found)


def find_part_again(
    second: Second, plan: Plan, search: Search, ways: Routes, part: int, frame: pd.DataFrame
) -> ByAttribute:
    """What is found in a part at a second look, if one is needed."""
    if not second.measures:
        return {}
    engine = task_engine(plan.device)
    found = [
        search.find_again(engine, job, Reporter(visible=False), second.measures, Stopwatch())
        for job in _jobs(plan, search, ways, part, frame)
    ]
    return combine(search.most, *found)


def _jobs(plan: Plan, search: Search, ways: Routes, part: int, frame: pd.DataFrame) -> Iterator[Job]:
    """What the rows that reached a part are looked at in: those of each cut for its attributes."""
    for cut, group in groupby(unpack(frame, part), key=lambda parcel: parcel.cut):
        rows = np.concatenate([parcel.items.reshape(-1, plan.layout.words + 1) for parcel in group])
        codes = unpack_keys(rows, plan.layout)
        yield search.part(ways.cuts[cut].targets, codes, rows[:, -1].astype(np.int64))


def conclude(plan: Plan, search: Search, first: ByAttribute, second: Second, again: ByAttribute) -> Assessed:
    """What goes to the client."""
    return search.conclude(first, second, again, plan.devices, {})
