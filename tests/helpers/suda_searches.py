"""The ways in which special uniques are searched, each as if it was the fastest."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from gpupif.special_uniques.search_time_and_memory import SearchMemory

# By name: the way, as of `search_time_and_memory.seconds_by_way`, and the memory that it may take (None: its own).
SEARCHES: dict[str, tuple[str, SearchMemory | None]] = {
    "pairs": ("pairs", None),
    "sets": ("sets", None),
    # Rows grouped by keys; or with a byte for each combination where there are up to 8.
    "sets-grouped": ("sets", SearchMemory(1, 0, None)),
    "sets-8-combinations": ("sets", SearchMemory(1, 8, None)),
    # All that is kept from one size of sets to the next is on disk.
    "sets-spilled": ("sets", SearchMemory(3, None, 0)),
    # As if not even the distinct rows had room: counted where they are.
    "counted": ("sets", None),
}


@contextlib.contextmanager
def searched_by(name: str) -> Iterator[None]:
    """Search so while it is open."""
    way, memory = SEARCHES[name]

    def nothing(*_: Any) -> None:
        """No rows."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpupif.special_uniques.search_time_and_memory.seconds_by_way", lambda *_, **__: {way: 0.0})
        if memory is not None:
            patch.setattr("gpupif.special_uniques.search.share_by_sets", lambda *_: memory)
        if name == "counted":
            patch.setattr("gpupif.special_uniques.search.gather_chunks", nothing)
        yield
