"""The memory of rows that have to be in one partition, because no cut keeps their cohorts whole.

An attacker who knows any few columns has cohorts for each set of columns. If missing values are wildcards, cohorts
overlap. In both cases one worker scores all distinct rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..engines.base import AnyKnownShares, Job, KnownSubset
from ..engines.individual_risk import scores_at_once
from ..engines.memory import AnyKnownNeeds, share_memory
from ..errors import InputError
from ..utils.memory import shown
from .table_plan import ChunkTotals, Plan, PopulationPlan
from .task_resources import runs_here, task_memory, task_threads

# The share of the worker's memory for the rows of one partition; and the bytes for them if no limit is known.
MEMORY_SHARE = 0.5
MOST_BYTES = 4 << 30


def room() -> int:
    """Return the bytes that rows may take if they have to be in one partition."""
    memory = task_memory()
    return MOST_BYTES if memory is None else int(MEMORY_SHARE * memory)


def check_one_partition(plan: Plan) -> None:
    """Raise InputError if rows that have to be in one partition take more memory than there is."""
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
    raise _too_many(
        " with ".join(why),
        (plan.distinct, others),
        needed,
        limit,
        f"Score or know fewer columns (columns, among), bin those with many values, {' and '.join(instead)}",
    )


def check_matched_in_one_partition(population: PopulationPlan, totals: ChunkTotals) -> PopulationPlan:
    """Return a population; raise InputError if it takes too much memory in one partition with its table.

    They are matched in one partition if missing values are wildcards.
    totals: ChunkTotals. The totals of the table.
    """
    rows, others, words, limit = totals.distinct, population.distinct, population.columns.layout.words, room()
    needed = _key_bytes(words, rows + others) + _matching_bytes(words, rows + others, 1)
    if any(population.columns.wildcards) and needed > limit:
        instead = "Name fewer quasi-identifiers, bin those with many values, use missing='category'"
        raise _too_many("missing: 'wildcard'", (rows, others), needed, limit, instead)
    return population


def _too_many(why: str, rows: tuple[int, int], needed: int, limit: int, instead: str) -> InputError:
    """Return the error of too many rows. rows: numbers of rows of the table and its population."""
    own, others = rows
    beside = f" and {others:,} of the population" if others else ""
    place, more = "the memory of one worker", "have workers with more memory"
    if runs_here():
        place, more = "memory", "raise memory_limit"
    return InputError(
        f"{why}: all distinct rows have to fit into {place}: {own:,} rows{beside}, of which those in a chunk differ, "
        f"take about {shown(needed)}, expected at most {shown(limit)}. {instead}, or {more}."
    )


def shares_of(plan: Plan, job: Job, sets: Sequence[KnownSubset], rows: int, others: int) -> AnyKnownShares:
    """Return the shares of memory for scoring a job against sets of known columns in one partition.

    rows, others: int. The numbers of distinct rows of the table and of the population.
    """
    needs, scored_columns = AnyKnownNeeds.from_job(job, plan.rows, sets), len(job.scored_columns)
    memory = room() - _held_bytes(plan, rows, others)
    return share_memory(needs, job.rows, scored_columns, task_threads(), memory, kept=scored_columns)


def _needed_bytes(plan: Plan, rows: int, others: int) -> int:
    """Return the least bytes for scoring this number of rows of both tables in one partition."""
    subsets = plan.request.subsets(plan.rows)
    sets = None if subsets is None else subsets.sets
    scoring = _scoring_bytes(plan, plan.job, sets, rows)
    if plan.population is not None:
        counting = plan.population.columns.sizes_job(plan.request)
        scoring = max(scoring, _scoring_bytes(plan, counting, sets, rows + others))
    return _held_bytes(plan, rows, others) + scoring


def _held_bytes(plan: Plan, rows: int, others: int) -> int:
    """Return the bytes that are held during scoring: keys and counts that came, and scores to send back."""
    scores = rows * len(plan.job.scored_columns) * len(plan.request.outputs)
    return _key_bytes(plan.layout.words, rows + others) + 8 * scores


def _key_bytes(words: int, rows: int) -> int:
    """Return the bytes of the keys and the counts of rows. words: number of words of a key."""
    return 8 * rows * (words + 1)


def _matching_bytes(words: int, rows: int, scores: int) -> int:
    """Return the bytes for matching distinct rows with wildcards. scores: number of scores of each row."""
    return 8 * rows * (6 * words + 12 + 2 * scores)


def _scoring_bytes(plan: Plan, job: Job, sets: Sequence[KnownSubset] | None, rows: int) -> int:
    """Return the least bytes for scoring this number of distinct rows."""
    needs = None if sets is None else AnyKnownNeeds.from_job(job, plan.rows, sets)
    fixed = 0 if needs is None else needs.least(rows, kept=len(job.scored_columns))
    if needs is not None and not plan.has_wildcards:
        return fixed
    # Each set is scored by itself if missing values are wildcards, if need be for one scored column at a time.
    scored_columns = len(job.scored_columns) if needs is None else 1
    return fixed + _matching_bytes(plan.layout.words, rows, scored_columns * scores_at_once(job))
