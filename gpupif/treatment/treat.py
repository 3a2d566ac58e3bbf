"""The public function `treat`: treat a table of any kind by a plan."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from ..attack.population import Population
from ..frames.dask_frame import is_dask
from ..frames.open import open_table, with_labels
from ..io.base import every_column
from ..utils.progress import Reporter, announce_compilation
from .memory_table import MemoryTable
from .plan import Plan
from .plan_run import Treated, apply_plan, find_key, make_record
from .treated_check import check_treated, named_by_criteria, refuse_unmet

if TYPE_CHECKING:
    from .dask_table import DaskTable


def treat(
    table: Any,
    plan: Any,
    *,
    key: bytes | str | os.PathLike[str] | None = None,
    seed: int | None = None,
    keep_unmet: bool = False,
    population: Any = None,
) -> Treated:
    """Treat a table by a plan: generalise, suppress or randomise its values.

    The treatments are applied in the order of the plan, each to the result of the treatment before. A plan and a key
    determine all values to the last bit, for any kind of table and any number of threads.

    Parameters
    ----------
    table:
        A pandas, Polars or cuDF DataFrame, a pyarrow Table, an object with ``__arrow_c_stream__``, a Dask DataFrame, or
        the path of files as `read_table` takes them. The table itself is not changed.
    plan:
        A `Plan`, the path of a plan (.toml, .json, .yaml), or a list of treatments. A plan may name a level of the
        frame's index as if it were a column; the level becomes a column before the table is treated.
    key:
        The secret from which random values are drawn: 32 bytes, or the path of a file that holds the bytes, raw or in
        hexadecimal digits. Nobody can undo or repeat the random values without the key. It is written nowhere. Default
        None: the plan must have no random treatment.
    seed:
        A number in place of a key, for tests only. Anyone who tries numbers finds the key that is made from it. Warns.
        Default None.

    keep_unmet:
        Whether to return a treated table that breaks a criterion of the plan; ``.is_met`` is then False. Default False:
        such a table is refused.
    population:
        The population, as in `gpupif.risk`, if criteria of the plan are on it. Default None: such criteria count as
        broken.

    Returns
    -------
    Treated
        ``.table`` is of the kind of the given table: lazy for Dask, a pandas DataFrame for a path. ``.record`` says
        how many cells each treatment changed. An unchanged column keeps its type. A changed column keeps its type if
        its new values are of the same kind; the type becomes nullable if cells were suppressed. Text in place of
        other values is categorical. Suppressed cells are missing values.

    Raises
    ------
    InputError, TableReadError
        The table, the plan or the key cannot be used. The message names the treatment and the column.
    UnmetError
        The treated table breaks a criterion of the plan, see `Plan`, or cannot be measured by it: the criterion needs a
        population, or a column that the plan drops. The message has the value.

    Warns
    -----
    UserWarning
        A seed is given in place of a key, or other users may read the file of the key.

    Examples
    --------
    >>> import gpupif, pandas
    >>> table = pandas.DataFrame({"age": [23, 94, 37], "sex": ["f", "m", "f"]})
    >>> done = gpupif.treat(table, [gpupif.treatments.Cap("age")])
    >>> done.table["age"].tolist()
    ['23', '90+', '37']

    """
    started = time.perf_counter()
    plan = Plan.from_any(plan)
    secret = find_key(plan, key, seed)
    named = [name for treatment in plan.treatments for name in treatment.named()]
    table = with_labels(table, [*named, *named_by_criteria(plan)])
    people = Population.from_any(population)
    with Reporter() as report, announce_compilation():

        def treat_as(table: Any, plan: Plan) -> Any:
            working = table_to_treat(table, report)
            apply_plan(working, plan, secret, report)
            return working.done()

        working = table_to_treat(table, report)
        applied = apply_plan(working, plan, secret, report)
        treated = working.done()
        checked = check_treated(plan, treated, working.rows, table, treat_as, people)
        refuse_unmet(plan, checked, keep_unmet)
    record = make_record(plan, applied, working.counts, *working.described(), secret, started, checked)
    return Treated(treated, record, working, applied)


def table_to_treat(table: Any, report: Reporter) -> MemoryTable | DaskTable:
    """Return a table that is no file, or that fits into memory, in the form that treatments take."""
    if is_dask(table):
        from .dask_table import DaskTable

        return DaskTable(table, report)
    return MemoryTable(open_table(table, every_column))
