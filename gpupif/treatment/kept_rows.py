"""The rows that a plan keeps, found by applying the treatments that decide about rows to the table again."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..io.checkpoints import Store
from ..io.read import open_source
from ..io.temporary_folder import temporary_folder
from ..out_of_core.memory_budget import plan_reading
from ..utils.config import resources
from ..utils.progress import Reporter
from .file_table import FileTable
from .plan import Plan
from .plan_run import apply_plan, named_in
from .suppression.suppress import SuppressRows
from .treat import table_to_treat
from .treatment import Treatment, ValueMap


def find_kept_rows(table: Any, plan: Plan, report: Reporter) -> npt.NDArray[np.bool_]:
    """Return for each row of a table whether a plan keeps the row: booleans (rows,).

    table: any table that `gpupif.treat` takes. Raises the errors of `gpupif.treat`, and InputError if a random
    treatment decides which rows are removed.
    """
    if not isinstance(table, str | os.PathLike):
        working = table_to_treat(table, report)
        apply_plan(working, _deciding(plan, working.names), None, report)
        return working.kept_rows()
    source, here = open_source(table), resources()
    with temporary_folder(here.temp) as folder:
        work = folder / "work"
        store = Store(work, work)
        store.open(False, work)
        try:
            files = FileTable(source, store, plan_reading(here.memory, len(source.names)), report)
            apply_plan(files, _deciding(plan, files.names), None, report)
            return files.kept_rows()
        finally:
            store.close(False)


def _deciding(plan: Plan, names: Sequence[Hashable]) -> Plan:
    """Return the treatments of a plan that decide which rows are removed.

    names: the columns of the table. Raises InputError if a random treatment is among them.
    """
    chosen: list[Treatment] = []
    looked_at: set[Hashable] = set()
    for treatment in reversed(plan.treatments):
        # A treatment that names no column may change every column.
        own = set(named_in(treatment, names)) or set(names)
        rows = treatment if isinstance(treatment, SuppressRows) else None
        if not (rows and rows.remove) and not own & looked_at:
            continue
        if treatment.is_random:
            column = next(name for name in names if name in own)
            raise InputError(
                f"plan: the removed rows depend on the random numbers of {treatment.do!r} for column {column!r}, which "
                "the plan does not contain. Name a column of both tables that identifies rows: row_id=."
            )
        # Other treatments read scores, which may depend on all columns.
        looked_at |= own if isinstance(treatment, ValueMap) or (rows and rows.k is not None) else set(names)
        chosen.append(treatment)
    return Plan(chosen[::-1], plan.hierarchies)
