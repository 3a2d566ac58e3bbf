"""Rows that have to be in one part, as no cut keeps their cohorts whole: how much memory they take, and may.

An attacker who knows any few of the columns has cohorts for each set of them; where missing values match every value
cohorts overlap. All distinct rows are scored by one worker then.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..engines.base import AnyKnownShares, Job, KnownSubset
from ..engines.known_subsets_memory import AnyKnownNeeds, share_memory
from ..errors import InputError
from ..utils.memory import shown
from .plan import Plan
from .worker import task_memory, task_threads

# What rows may take that have to be in one part: this share of what their worker may, or so much where none is said.
MEMORY_SHARE = 0.5
MOST_BYTES = 4 << 30


def room() -> int:
    """Bytes that rows may take that have to be in one part."""
    memory = task_memory()
    return MOST_BYTES if memory is None else int(MEMORY_SHARE * memory)


def check_one_part(plan: Plan) -> None:
    """Raise InputError where rows that have to be in one part take more than there is."""
    population, asked, limit = plan.population, plan.request.any_known, room()
    others = 0 if population is None else population.distinct
    needed = _needed_bytes(plan, plan.distinct, others)
    if needed <= limit:
        return
    why, instead = [], []
    if asked is not None:
        why.append(f"known: any {asked.known} columns")
        instead.append("name the known columns")
    if plan.has_wildcards:
        why.append("missing: 'wildcard'")
        instead.append("use missing='category'")
    beside = f" and {others:,} of the population" if others else ""
    raise InputError(
        f"{' with '.join(why)}: all different rows have to fit into the memory of one worker: {plan.distinct:,} "
        f"rows{beside}, of which those in a partition differ, take about {shown(needed)}, expected at most "
        f"{shown(limit)}. Score or know fewer columns (columns, among), bin those with many values, "
        f"{' and '.join(instead)}, or have workers with more memory."
    )


def shares_of(plan: Plan, job: Job, sets: Sequence[KnownSubset], rows: int, others: int) -> AnyKnownShares:
    """What scoring a job on sets may take, where so many rows of the table and the population are in one part."""
    needs, targets = AnyKnownNeeds.of(job, plan.rows, sets), len(job.targets)
    memory = room() - _held_bytes(plan, rows, others)
    return share_memory(needs, job.rows, targets, task_threads(), memory, kept=targets)


def _needed_bytes(plan: Plan, rows: int, others: int) -> int:
    """What so many rows of the table and the population take at least where they are scored in one part."""
    subsets = plan.request.subsets(plan.rows)
    sets = None if subsets is None else subsets.sets
    scoring = _scoring_bytes(plan, plan.job, sets, rows)
    if plan.population is not None:
        counting = plan.population.columns.sizes_job(plan.request)
        scoring = max(scoring, _scoring_bytes(plan, counting, sets, rows + others))
    return _held_bytes(plan, rows, others) + scoring


def _held_bytes(plan: Plan, rows: int, others: int) -> int:
    """What is there beside scoring: keys and counts as they come, and scores as they leave."""
    scores = rows * len(plan.job.targets) * len(plan.request.outputs)
    return 8 * ((rows + others) * (plan.layout.words + 1) + scores)


def _scoring_bytes(plan: Plan, job: Job, sets: Sequence[KnownSubset] | None, rows: int) -> int:
    """What scoring so many distinct rows takes at least."""
    needs = None if sets is None else AnyKnownNeeds.of(job, plan.rows, sets)
    fixed = 0 if needs is None else needs.least(rows, kept=len(job.targets))
    if needs is not None and not plan.has_wildcards:
        return fixed
    # Sets are scored one by one where missing values match every value, for one target at a time if need be.
    targets = len(job.targets) if needs is None else 1
    return fixed + 8 * rows * (6 * plan.layout.words + 12 + 2 * targets * len(job.measures))
