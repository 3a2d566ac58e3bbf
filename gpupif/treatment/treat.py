"""The public `treat`: a table of any kind treated as a plan says."""

from __future__ import annotations

import os
import time
from typing import Any

from ..frames.dask_frame import is_dask
from ..frames.open import open_table, with_labels
from ..io.base import every_column
from ..results.provenance import describe_frame
from ..utils.progress import Reporter, announce_compilation
from .memory_table import MemoryTable
from .plan import Plan
from .plan_run import Treated, apply_plan, find_key, make_record


def treat(
    table: Any,
    plan: Any,
    *,
    key: bytes | str | os.PathLike[str] | None = None,
    seed: int | None = None,
) -> Treated:
    """Treat a table as a plan says: generalise, suppress, randomise its values.

    The treatments are done one after the other, each to the table as the ones before have left it. The same plan and
    key give the same values to the last bit, whatever kind of table it is, however it is cut, on any number of threads.

    Parameters
    ----------
    table:
        A pandas, Polars or cuDF DataFrame, a pyarrow Table, an object with ``__arrow_c_stream__``, a Dask DataFrame, or
        the path of files as `read_table` takes them. It stays as it is.
    plan:
        A `Plan`, the path of one (.toml, .json, .yaml), or a list of treatments. A named level of the frame's index is
        named as a column is, and becomes one before it is treated.
    key:
        What is random is drawn by this secret: 32 bytes, or the path of a file that holds them, raw or in hexadecimal
        digits. Without it nobody can undo or repeat what was drawn. It is written nowhere.
    seed:
        For tests only, in place of a key: a number, from which a key is made that anyone can find. Warns.

    Returns
    -------
    Treated
        ``.table`` of the kind that came in, lazy for Dask, a pandas DataFrame for a path; ``.record``, which says what
        was done to how many cells. Columns that did not change are as they came, with their types; those that did keep
        their types where the values are of the old kind (nullable, where cells were suppressed), and text in place of
        anything else is categorical. Suppressed cells are missing values.

    Raises
    ------
    InputError, TableReadError
        A table, plan or key that cannot be used; the message names the treatment and the column.

    Warns
    -----
    UserWarning
        Where a seed stands in place of a key, or others may read the file of the key.

    Examples
    --------
    >>> import gpupif, pandas
    >>> table = pandas.DataFrame({"age": [23, 94, 37], "sex": ["f", "m", "f"]})
    >>> done = gpupif.treat(table, [gpupif.treatments.Cap("age")])
    >>> done.table["age"].tolist()
    ['23', '90+', '37']

    """
    plan = Plan.of(plan)
    secret = find_key(plan, key, seed)
    table = with_labels(table, [name for one in plan.treatments for name in one.named()])
    if is_dask(table):
        from .dask_table import treat_dask

        return treat_dask(table, plan, secret)
    return treat_frame(open_table(table, every_column), plan, secret)


def treat_frame(frame: Any, plan: Any, key: Any) -> Treated:
    """As `treat`, of a table in memory, and with a plan and key that are checked."""
    started = time.perf_counter()
    with Reporter() as report, announce_compilation():
        working = MemoryTable(frame)
        applied = apply_plan(working, plan, key, report)
        table = working.done()
    record = make_record(plan, applied, working.counts, describe_frame(frame), frame.rows, key, started)
    return Treated(table, record, working, applied)
