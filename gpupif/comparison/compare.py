"""The public `compare`: what a treatment of a table bought in risk, and what it cost in utility."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from ..attack.hierarchy_files import read_named_files
from ..attack.roles import classes_by_roles
from ..errors import InputError
from ..frames.dask_frame import is_dask
from ..hierarchies.open import open_hierarchies
from ..treatment.kept_rows import find_kept_rows, removes_rows
from ..treatment.plan import Plan
from ..treatment.record import plan_of
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import Columns, as_columns, as_mapping, check_exist, check_word, whole_number
from .aligned_tables import AlignedTables, CompareRequest, FindKept, hold, request_of
from .precision import Levels
from .record_linkage import check_linkage, link_rows
from .released_values import ReleasedColumn, joint_requests, make_joint, released_columns
from .result import Comparison
from .risk import RiskFigures, RiskRequest, cells_side_by_side, measure_risk, side_by_side
from .row_versions import VersionLayout, count_versions
from .utility import measure_all, measure_columns, measure_pairs

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
    roles: Any = None,
) -> Comparison:
    """Compare a table with what a treatment made of it: risk side by side, and every figure of what was lost.

    All is computed from counts of values and their combinations, in whole numbers, so that it is the same to the last
    bit wherever the tables lie. Values before are brought to the *released detail*, so that distributions are held
    against each other as finely as the treated table has them, and coarser values alone are no variation: where what
    was released is a function of the value (age 34, always "30-39"), that is its detail. Where it is none, or the plan
    says that values are drawn anew, a value stands as it is, or, where it was never released, for the value that was
    most often released for it. A function is not believed of a column in which most rows have values of their own
    unless it leaves at most half as many.

    Parameters
    ----------
    before, after:
        The table and the treated one, each of any kind that `gpupif.score` takes, not necessarily the same. The one
        after may lack columns, which are then lost whole, and with `row_id` rows. A missing value after where there was
        one before is a suppressed cell. Where values of a column have no type in common they are known by their texts.
    plan:
        The `gpupif.Plan` by which it was treated, or what `gpupif.treat` takes as one, or the record of the treatment
        (`Treated.record`, or its file): says to what levels of their hierarchies values were brought, which columns are
        drawn anew, and which rows were taken away.
    columns:
        Columns to be compared; default the quasi-identifiers and sensitive columns of `roles`, or without roles all
        columns of the table before, which then have to include all columns of the table after.
    quasi_identifiers:
        What the attacker knows, a column or a list of several: of these are equivalence classes, and the known columns
        of cell scores. Default: all that are compared, but for sensitive ones.
    sensitive:
        Sensitive attributes, a column or a list: for l, t and homogeneous classes. They are scored, but not known.
    row_id:
        A column with another value in each row, which says which rows belong together; held in memory, and not
        compared. Default: rows belong together by their order, and the table after has all rows, or those that the plan
        leaves. Rows that it lacks count as suppressed: all their values are missing.
    hierarchies:
        Of columns, as of `gpupif.Plan`, where the plan has none: for precision. Without a level in the plan a column is
        at the level at which its hierarchy gives what was released; at no single one, it has no precision.
    distances:
        How far values are apart, for the earth mover's distance and t: by column, as of `gpupif.score`.
    k:
        What n / classes is divided by, for the normalised class size; default: the rows of the smallest class after,
        but for suppressed ones.
    suppressed:
        How risk reads suppressed cells: "category" (missing is a value of its own), "wildcard" (they may be anything;
        not for more different rows than fit into memory), or "both", and the worse is reported.
    linkage:
        Record linkage by distance, see `gpupif.results.Linkage`: "auto" (where values were perturbed; exact up to ten
        thousand million pairs of different rows, else of a sample of 1,000), "exact", the number of rows to draw, or
        None.
    seed:
        Of that sample; the same rows wherever the tables lie.
    roles:
        Roles of the columns, as of `gpupif.read_roles`, or the path of a file of them, for what no other argument says:
        which are quasi-identifiers and which are sensitive. Every column of the table before needs a role. Identifiers
        and columns that are left out are not read.

    Returns
    -------
    Comparison
        ``.risk``, ``.cells``, ``.utility``, ``.columns``, ``.pairs``, ``.linkage``; prints as tables; ``.to_dict()``,
        ``.to_json()``.

    Raises
    ------
    InputError
        No rows, numbers of rows that do not fit, where neither a plan nor row_id says which rows were taken away, rows
        or columns that only the table after has, names of rows that are missing or repeat, unknown columns
        (ColumnNotFoundError), lists or structs (ColumnTypeError), an argument out of range, too many pairs for exact
        linkage, too little memory.
    TableReadError
        A file that cannot be read, or changes meanwhile.
    DeviceError
        A GPU that was asked for (`gpupif.config`) and cannot be used, or that fails.

    References
    ----------
    Of each figure: `gpupif.results.Utility`, and the page on comparing.

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
    check_word("suppressed", suppressed, SUPPRESSED)
    check_linkage(linkage, seed)
    wanted = None if k is None else whole_number("k", k, "rows of a class")
    started = time.perf_counter()
    agreed = Plan([]) if plan is None else plan_of(plan)
    nested = {**open_hierarchies(hierarchies), **agreed.hierarchies}
    before, after = hold(before, "before"), hold(after, "after")
    before, quasi_identifiers, sensitive, by_roles = classes_by_roles(
        before, quasi_identifiers, sensitive, roles, columns
    )
    if by_roles is not None:
        by_roles.warn_of_weights()
        if columns is None:
            columns = [
                *as_columns("quasi_identifiers", quasi_identifiers, before),
                *as_columns("sensitive", () if sensitive is None else sensitive, before, empty=True),
            ]
    request = request_of(before, after, columns, row_id)
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
            partial(find_kept_rows, before, agreed, report) if removes_rows(agreed) else None,
        ) as tables,
    ):
        opened = time.perf_counter()
        with tables.joined() as counts:
            counted = counts.count(joint_requests(len(names)), make_joint)
            released = released_columns(names, counted, request.dropped, levels.perturbed)
            levels = levels.with_found(released, nested)
            released = [levels.at_groups(column, nested) for column in released]
            linked = link_rows(counts, released, places, linkage, int(seed))
        layout = VersionLayout.from_columns(released)
        with tables.versions(layout) as counts:
            versions = count_versions(counts, tables.rows, layout, places)
        taken_away = tables.lacking
    by_column = measure_columns(versions, released, levels, apart)
    pairs = measure_pairs(versions, released)
    utility = measure_all(versions, released, by_column, pairs, levels, wanted)
    done = time.perf_counter()
    asked = RiskRequest(known, attributes, apart)
    figures = measure_risk(before, asked, "category")
    readings = _readings(after, asked.without(request.dropped), suppressed, _has_holes(released))
    seconds = {"encode": opened - started, "utility": done - opened, "risk": time.perf_counter() - done}
    return Comparison(
        rows=versions.rows,
        rows_taken_away=taken_away,
        quasi_identifiers=known,
        sensitive=attributes,
        dropped=list(request.dropped),
        risk=side_by_side(figures, readings),
        cells=cells_side_by_side(figures, readings),
        utility=utility,
        columns=by_column,
        pairs=pairs,
        linkage=linked,
        seconds=seconds,
    )


def _open_aligned(
    before: Any, after: Any, request: CompareRequest, report: Reporter, find_kept: FindKept | None
) -> AlignedTables:
    """Open two tables of any kinds, on Dask if either is a Dask frame. Raises the errors of `gpupif.compare`."""
    if is_dask(before) or is_dask(after):
        from .dask_tables import DaskTables

        return DaskTables(before, after, request, find_kept)
    from .local_tables import LocalTables

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
