"""The public function `compare`: by how much a treatment of a table lowered its risk, and its utility."""

from __future__ import annotations

import time
import warnings
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from ..attack.hierarchy_files import read_named_files
from ..attack.roles import classes_by_roles
from ..errors import InputError, NearlyUniqueWarning
from ..frames.dask_frame import is_dask
from ..frames.open import table_names
from ..hierarchies.open import open_hierarchies
from ..treatment.kept_rows import find_kept_rows
from ..treatment.plan import Plan
from ..treatment.record import plan_of
from ..treatment.treated_check import check_treated, why_unmet
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import Columns, as_columns, as_mapping, check_exist, check_word, share, whole_number
from .aligned_rows import CompareRequest, FindKept, choose_columns, hold
from .continuous_values import measure_continuous
from .joined_tables import JoinedTables, LocalTables
from .precision import Levels
from .record_linkage import check_linkage, link_rows
from .released_values import ReleasedColumn, joint_requests, make_joint, released_columns
from .result import Comparison
from .risk import RiskFigures, RiskRequest, cells_side_by_side, measure_risk, side_by_side, singled_out
from .row_versions import VersionLayout, count_versions
from .utility import measure_all, measure_columns, measure_pairs
from .weighted_estimates import estimate_weighted

SUPPRESSED = ("both", "category", "wildcard")


def compare(
    before: Any,
    after: Any,
    plan: Any = None,
    *,
    columns: Columns | None = None,
    quasi_identifiers: Columns | None = None,
    sensitive: Columns | None = None,
    row_id: Hashable = None,
    hierarchies: Any = None,
    distances: Mapping[Hashable, Any] | None = None,
    k: int | None = None,
    suppressed: str = "both",
    linkage: str | int | None = "auto",
    seed: int = 0,
    numbers: Columns | None = None,
    interval: float = 0.05,
    weights: Hashable = None,
    roles: Any = None,
) -> Comparison:
    """Compare a table with its treated version: the risk of both side by side, and how much utility was lost.

    All figures are computed from counts of values and their combinations, in whole numbers. So they are the same to the
    last bit for tables of any kind.

    The *released detail* of a value is how finely the treated table shows it. Values before are brought to it, so that
    coarser values alone are no variation. If the released value is a function of the value (34 is always released as
    "30-39"), it is the released detail. If it is not, or the plan draws values anew, a number is its own detail, and
    so is any value that was released; for a value that was never released it is the value most often released for it.
    If most rows of a column have values of their own, any change looks like a function: it counts as one only if at
    most half as many values are left.

    Parameters
    ----------
    before, after:
        The table and the treated table, each of any kind that `gpupif.score` takes; the kinds may differ. The table
        after may lack columns, which are then lost whole, and with `plan` or `row_id` rows. A value that is missing
        after, and was not before, is a suppressed cell. If the values of a column have no common type, their texts are
        compared.
    plan:
        The `gpupif.Plan` of the treatment, or anything that `gpupif.treat` takes as a plan, or the record of the
        treatment (`Treated.record`, or its file). It names the levels of hierarchies, the columns that are drawn anew,
        and the rows that were removed. A plan of `gpupif.protect` also names the quasi-identifiers and the sensitive
        columns, if `columns`, `quasi_identifiers` and `sensitive` are not given; before `roles`. The criteria of the
        plan are measured in the table after, see `Comparison.is_met`.
    columns:
        The columns to be compared. Default: the quasi-identifiers and sensitive columns of `roles`; without roles all
        columns of the table before, which must then include all columns of the table after.
    quasi_identifiers:
        The columns that the attacker knows, a name or a list: equivalence classes are formed by them, and they are the
        known columns of cell scores. Default: all compared columns that are not sensitive.
    sensitive:
        Sensitive attributes, a name or a list, for l, t and homogeneous classes. They are scored, but not known.
    row_id:
        A column with a different value in each row, by which rows are aligned. It is held in memory, and not compared.
        Default: rows are aligned by their order, and the table after has all rows, or the rows that the plan keeps.
        Rows that the table after lacks count as suppressed: all their values are missing.
    hierarchies:
        Hierarchies of columns for which the plan has none, as in `gpupif.Plan`, for precision. If the plan names no
        level for a column, its level is the lowest one that gives the released values; if there is none, the column has
        no precision.
    distances:
        How far values are apart, by column, as in `gpupif.score`: for the earth mover's distance and t.
    k:
        The divisor of n / classes, for the normalised class size. Default: the number of rows of the smallest class
        after, without suppressed rows.
    suppressed:
        How risk reads suppressed cells: "category" (missing is a value of its own), "wildcard" (a missing value matches
        every value; distinct rows must fit into memory), or "both": the worse of the two is reported.
    linkage:
        Record linkage by distance, see `gpupif.results.Linkage`: "auto" (if values were perturbed; exact up to
        10,000,000,000 pairs of distinct rows, else with a sample of 1,000 rows), "exact", the number of rows to draw,
        or None. The columns of `numbers` are linked by distance and by rank in the same way, if there are any; up to 5
        of them exactly, however many rows there are. All distinct pairs of rows must then fit into memory.
    seed:
        The seed of the sample. It draws the same rows for tables of any kind.
    numbers:
        The columns of numbers whose disclosure risk and information loss are measured, see `gpupif.results.Continuous`.
        Default: all compared columns of finite numbers, before and after, in which a value changed. An empty list
        measures none.
    interval:
        The half-width of the intervals of interval disclosure: in standard deviations, and as a share of the ranks.
        Above 0, up to 1.
    weights:
        A column of the table before with the sampling weight of each row: how many people it stands for. It is not
        compared. With it `.estimates` has weighted totals, means, quantiles and shares. If the table after has the
        column too, scores of cells and shares of sensitive values are weighted, as in `gpupif.score` and
        `gpupif.risk`. All other figures count each row once. Default: the weight of `roles`, else none.
    roles:
        Roles of the columns, as from `gpupif.read_roles`, or the path of a file of roles. They say which columns are
        quasi-identifiers and which are sensitive, if no other argument does. Every column of the table before needs a
        role. Identifiers and columns that are left out are not read.

    Returns
    -------
    Comparison
        ``.risk``, ``.cells``, ``.utility``, ``.columns``, ``.pairs``, ``.linkage``, ``.continuous``, ``.estimates``;
        prints as tables; ``.to_dict()``, ``.to_json()``.

    Raises
    ------
    InputError
        If a table has no rows, the numbers of rows differ and neither a plan nor row_id says which rows were removed,
        only the table after has a row or a column, a name of a row is missing or repeats, a column is unknown
        (ColumnNotFoundError) or has lists or structs (ColumnTypeError), an argument is out of range, exact linkage has
        too many pairs, a column of `numbers` has other values, a weight is missing, negative or no number, or there is
        too little memory.
    TableReadError
        If a file cannot be read, or changes while it is read.
    DeviceError
        If a requested GPU (`gpupif.config`) cannot be used, or fails.

    References
    ----------
    See `gpupif.results.Utility` and the page on comparing for the source of each figure.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> before = pd.DataFrame({"age": [31, 34, 38, 42, 45, 47], "sex": list("fmfmfm")})
    >>> after = before.assign(age=["30-39"] * 3 + ["40-49"] * 3)
    >>> found = gpupif.compare(before, after)
    >>> found.risk.loc["uniques", ["before", "after"]].tolist()
    [6.0, 2.0]
    >>> round(found.utility.entropy_lost, 4), found.utility.classes, found.utility.total_variation
    (1.585, 4, 0.0)

    """
    import pandas as pd

    check_word("suppressed", suppressed, SUPPRESSED)
    check_linkage(linkage, seed)
    interval = share("interval", interval)
    wanted = None if k is None else whole_number("k", k, "rows of a class")
    started = time.perf_counter()
    agreed = Plan([]) if plan is None else plan_of(plan)
    quasi_identifiers, sensitive = agreed.attacker(columns, quasi_identifiers, sensitive)
    nested = {**open_hierarchies(hierarchies), **agreed.hierarchies}
    before, after = hold(before, "before"), hold(after, "after")
    before, quasi_identifiers, sensitive, by_roles = classes_by_roles(
        before, quasi_identifiers, sensitive, roles, columns
    )
    if by_roles is not None:
        weights = by_roles.weight if weights is None else weights
        if columns is None:
            columns = [
                *as_columns("quasi_identifiers", quasi_identifiers, before),
                *as_columns("sensitive", () if sensitive is None else sensitive, before, empty=True),
            ]
    request = choose_columns(before, after, columns, row_id, weights)
    measured = None if numbers is None else as_columns("numbers", numbers, before, empty=True)
    attributes = [] if sensitive is None else as_columns("sensitive", sensitive, before)
    check_exist("sensitive", attributes, request.columns, "the columns that are compared")
    known = _known(quasi_identifiers, attributes, request, before)
    levels = Levels.from_plan(agreed, nested)
    named = read_named_files("distances", distances)
    apart = dict(as_mapping("distances", named, request.columns, request.columns, table=False))
    names, places = list(request.columns), [request.columns.index(name) for name in known]
    with (
        Reporter() as report,
        announce_compilation(),
        _open_aligned(
            before,
            after,
            request,
            report,
            None if plan is None else partial(find_kept_rows, before, agreed, report),
        ) as tables,
    ):
        opened = time.perf_counter()
        with tables.joined() as counts:
            counted = counts.count(joint_requests(len(names)), make_joint)
            released = released_columns(names, counted, request.dropped, levels.perturbed)
            levels = levels.with_released(released, nested).with_unchanged(released, known)
            released = [levels.at_groups(column, nested) for column in released]
            linked = link_rows(counts, released, places, linkage, int(seed))
            continuous, estimates = measure_continuous(counts, released, measured, interval, linkage, int(seed))
            if weights is not None:
                estimates += estimate_weighted(counts, released)
        layout = VersionLayout.from_columns(released)
        with tables.versions(layout) as counts:
            versions = count_versions(counts, tables.rows, layout, places)
        taken_away = tables.lacking
    by_column = measure_columns(versions, released, levels, apart)
    pairs = measure_pairs(versions, released)
    utility = measure_all(versions, released, by_column, pairs, levels, wanted, taken_away)
    frame = pd.DataFrame(estimates, columns=["column", "estimate", "other", "before", "after"])
    done = time.perf_counter()
    asked = RiskRequest(known, attributes, apart, request.weights_after)
    figures = measure_risk(before, asked, "category")
    with warnings.catch_warnings():
        # The table before has warned of them.
        warnings.simplefilter("ignore", NearlyUniqueWarning)
        readings = _readings(after, asked.without(request.dropped), suppressed, _has_holes(released))
        # What the table after cannot be measured by was measured when the table was treated.
        checked = check_treated(agreed, after, versions.rows - taken_away)._replace(unmeasured={})
    others = [name for name in names if name not in (*known, *attributes, *request.dropped)]
    others += [asked.weights] * (asked.weights is not None)
    seconds = {"encode": opened - started, "utility": done - opened, "risk": time.perf_counter() - done}
    return Comparison(
        rows=versions.rows,
        rows_taken_away=taken_away,
        quasi_identifiers=known,
        sensitive=attributes,
        weights=asked.weights,
        dropped=list(request.dropped),
        not_compared=[name for name in table_names(before)[0] if name not in (*names, row_id, weights)],
        singled_out=singled_out(after, others),
        risk=side_by_side(figures, readings),
        cells=cells_side_by_side(figures, readings),
        utility=utility,
        columns=by_column,
        pairs=pairs,
        linkage=linked,
        continuous=continuous,
        estimates=frame.assign(difference=frame["after"] - frame["before"]),
        seconds=seconds,
        criteria=checked.values,
        unmet=why_unmet(agreed, checked),
    )


def _open_aligned(
    before: Any, after: Any, request: CompareRequest, report: Reporter, find_kept: FindKept | None
) -> JoinedTables:
    """Open two tables of any kind, on Dask if either is a Dask frame. Raises the errors of `gpupif.compare`."""
    if is_dask(before) or is_dask(after):
        from .dask_tables import DaskTables

        return DaskTables(before, after, request, find_kept)
    return LocalTables(before, after, request, report, find_kept)


def _known(given: Any, attributes: Sequence[Hashable], request: CompareRequest, before: Any) -> list[Hashable]:
    """Return the quasi-identifiers. Raises InputError if a sensitive attribute is among them."""
    if given is None:
        known = [name for name in request.columns if name not in attributes]
    else:
        known = as_columns("quasi_identifiers", given, before)
        check_exist("quasi_identifiers", known, request.columns, "the columns that are compared")
    both = [name for name in attributes if name in known]
    if both:
        raise InputError(
            f"sensitive: column {both[0]!r} is among the quasi-identifiers too. Leave it out of either of them."
        )
    if not known:
        raise InputError("quasi_identifiers: expected at least one column that is not sensitive, got none.")
    return known


def _has_holes(columns: Sequence[ReleasedColumn]) -> bool:
    """Return whether any cell is suppressed in a row that the table after has."""
    return any(column.kind != "dropped" and column.joint.hidden.any() for column in columns)


def _readings(after: Any, request: RiskRequest, suppressed: str, holes: bool) -> dict[str, RiskFigures]:
    """Return the risk after, by the reading of suppressed cells. Without suppressed cells there is one reading."""
    asked = ("category", "wildcard") if suppressed == "both" else (suppressed,)
    return {reading: measure_risk(after, request, reading) for reading in (asked if holes else ("category",))}
