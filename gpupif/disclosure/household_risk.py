"""The public `household_risk`: of each row of a table the risk of its household."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpupif.kernels import individual_risk as kernels

from ..encoding.encode import encode_column
from ..engines.choose import choose_engine
from ..frames.dask_frame import check_dask_frame, is_dask
from ..frames.open import device_for, open_frame, open_table
from ..scoring.score import score
from ..utils.arrays import on_host
from ..utils.docs import documented_as
from ..utils.validation import Columns
from .households import risks_by_code, sum_households
from .privacy_models import k_anonymity
from .request import RiskRequest, check_households

if TYPE_CHECKING:
    import pandas as pd

    from ..results.scores import Scores

NAME = "household_risk"
MEASURE = "individual_risk"
# Rows of the same sums are put together over so many partitions at a time.
FAN_IN = 16


@documented_as(k_anonymity)
def household_risk(
    table: Any, quasi_identifiers: Columns, household: Hashable, *, weights: Hashable = None, missing: str = "category"
) -> Any:
    """Return for each row the risk that at least one row of its household is re-identified.

    1 - the product of 1 - r over the rows of the household, r being the `individual_risk` of a row, which `score` has:
    as who finds one member of a household finds them all. `risk` has what follows for the table (``household=``).

    Parameters
    ----------
    table:
        As of `gpupif.score`; of a path the columns that are needed are read into memory.
    household:
        The column that says which rows are of one household: those with the same value. No missing value, and neither
        a quasi-identifier nor the column of weights.

    Returns
    -------
    Series
        A probability for each row, in [0, 1], named ``household_risk``: of the kind that the table is, with its index
        (an Arrow array of a pyarrow Table, pandas for a path). Of a Dask DataFrame a Dask Series, which computes when
        Dask is asked to. The same in any order of the rows, to the last bit.

    Raises
    ------
    InputError
        As `gpupif.score`; a column of households that is missing somewhere, or is a quasi-identifier.
    TableReadError, DeviceError
        As `gpupif.score`.

    Warns
    -----
    NearlyUniqueWarning
        As `gpupif.score`.

    References
    ----------
    Franconi & Polettini 2004, Individual risk estimation in mu-Argus: a review, section 4; sdcMicro's measure_risk with
    ``hid``.

    Examples
    --------
    Two of the three live together:

    >>> import pandas as pd, gpupif
    >>> table = pd.DataFrame({"age": [30, 30, 41], "home": ["a", "b", "b"]})
    >>> gpupif.models.household_risk(table, "age", "home").tolist()
    [0.5, 1.0, 1.0]

    """
    request = RiskRequest.from_arguments(
        table, quasi_identifiers, None, (), weights=weights, missing=missing, household=household
    )
    known = request.quasi_identifiers

    def risks_of(table: Any) -> Scores:
        return score(table, MEASURE, columns=known[:1], known=known, weights=weights, missing=missing)

    if is_dask(table):
        check_dask_frame(table)
        request.pick(list(table.columns))
        return _on_dask(risks_of(table)[MEASURE][known[0]], table[household], household)
    frame = open_table(table, request.pick, choose_engine(device_for(table)).frames)
    request.pick(frame.names)
    with frame.active():
        column = encode_column(household, frame.column(frame.names.index(household))).on_host()
    check_households(household, column.missing_rows)
    risks = on_host(risks_of(frame).array(MEASURE)[0])
    by_code = risks_by_code(sum_households(risks, np.ones(len(risks), np.int64), column.codes))
    with frame.active():
        return frame.series(by_code[column.codes], NAME)


def _on_dask(risks: Any, households: Any, name: Hashable) -> Any:
    """The risk of the households of a Dask Series, from that of its rows: sums by partition, then of all of them."""
    import dask.dataframe as dd
    import pandas as pd

    meta = pd.DataFrame({"upper": [0], "lower": [0]})
    asked = {"align_dataframes": False, "meta": meta}
    sums = dd.map_partitions(_sums_of_partition, risks, households, name, **asked)
    sums = sums.reduction(_together, aggregate=_together, combine=_together, meta=meta, split_every=FAN_IN)
    (whole,) = sums.to_delayed()
    return dd.map_partitions(_risks_of_partition, households, whole, align_dataframes=False, meta=(NAME, "f8"))


def _sums_of_partition(risks: Any, households: Any, name: Hashable) -> pd.DataFrame:
    """Return the sums over the rows of each household in a partition; the households are the index."""
    import pandas as pd

    codes, labels = pd.factorize(_on_host(households))
    check_households(name, int((codes < 0).sum()))
    upper, lower = np.zeros(len(labels), np.int64), np.zeros(len(labels), np.int64)
    kernels.add_safety(_on_host(risks).to_numpy(), np.ones(len(codes), np.int64), codes, upper, lower)
    return pd.DataFrame({"upper": upper, "lower": lower}, index=labels)


def _together(sums: pd.DataFrame) -> pd.DataFrame:
    """Sums of several partitions, those of a household as one."""
    return sums.groupby(level=0).sum().clip(upper=int(kernels.MOST_UPPER))


def _risks_of_partition(households: Any, sums: pd.DataFrame) -> Any:
    """Return for each row of a partition the risk of its household."""
    import pandas as pd

    by_household = np.empty(len(sums))
    kernels.household_risks(sums["upper"].to_numpy(), sums["lower"].to_numpy(), by_household)
    place = sums.index.get_indexer(pd.Index(_on_host(households)))
    return open_frame(households.to_frame()).series(by_household[place], NAME)


def _on_host(series: Any) -> Any:
    """A column of a partition as a Series of pandas."""
    return series.to_pandas() if hasattr(series, "to_pandas") else series
