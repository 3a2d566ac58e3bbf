"""Which runs are kept, and the removal of all others, whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ..configuration.settings import KeepSettings
from ..outcome import Status
from . import kept
from .record import Record, time_of


def apply(record: Record, keep: KeepSettings, now: datetime) -> list[int]:
    """Remove the runs that need not be kept any more; their numbers.

    A run is kept if it is among the last `keep.runs`, or began within `keep.days`; without either all are. The last
    good run and one that is on are always kept. Of a run that is removed the kept scores go, and its rows in the record
    but for one that says that there was such a run, how it ended, and when it was removed.

    record: opened to write, with the lock. Raises OutputError.
    """
    good = record.last_good()
    going = expired(record.heads(), keep, now, None if good is None else good.number)
    # The record first: what it has as removed the next run removes, where this one is killed.
    if going:
        record.remove(going, now)
    for number in going:
        kept.remove(record.folder, number)
    return going


def expired(heads: Sequence[Mapping[str, Any]], keep: KeepSettings, now: datetime, good: int | None) -> list[int]:
    """Numbers of the runs that need not be kept any more; heads: see `Record.heads`; good: the last good run."""
    if keep.runs is None and keep.days is None:
        return []
    there = [head["number"] for head in heads if head["removed"] is None]
    staying = {good, *(head["number"] for head in heads if head["status"] == Status.RUNNING)}
    if keep.runs is not None:
        staying |= set(there[-keep.runs :])
    if keep.days is not None:
        oldest = now - timedelta(days=keep.days)
        latest: datetime | None = None
        for head in heads:
            # No run is older than one before it, whatever the clock said.
            latest = max(filter(None, (latest, time_of(head["started"]))), default=None)
            if latest is None or latest >= oldest:
                staying.add(head["number"])
    return [number for number in there if number not in staying]


def tidy(record: Record) -> None:
    """Finish what runs that were killed had begun with kept scores; record: opened to write, with the lock."""
    heads = record.heads()
    keeping = [head["number"] for head in heads if head["kept_path"] is not None]
    kept.tidy(record.folder, keeping, [head["number"] for head in heads if head["removed"] is not None])
