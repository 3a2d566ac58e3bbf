"""The public `household_risk`: for each row of a table the risk of its household."""

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
# The number of partitions whose sums are added up by one task on Dask.
FAN_IN = 16


@documented_as(k_anonymity)
def household_risk(
    table: Any, quasi_identifiers: Columns, household: Hashable, *, weights: Hashable = None, missing: str = "category"
) -> Any:
    """Return for each row the risk that at least one row of its household is re-identified.

    An attacker who finds one member of a household finds all members. The risk is 1 - the product of 1 - r over the
    rows of the household, r being the `individual_risk` of a row, as in `gpupif.score`. `gpupif.risk` has the risk of
    all households of a table (``household=``).

    Parameters
    ----------
    table:
        As in `gpupif.score`. From a path, the needed columns are read into memory.
    household:
        The column whose value is the same in all rows of a household. It has no missing value, and is neither a
        quasi-identifier nor the column of weights.

    Returns
    -------
    Series
        A probability for each row, in [0, 1], named ``household_risk``. It is of the table's library and has its index;
        a pyarrow Table gives an Arrow array, a path a pandas Series. A Dask DataFrame gives a lazy Dask Series. The
        order of the rows does not matter, to the last bit.

    Raises
    ------
    InputError
        As `gpupif.score`; a household column with missing values, or that is a quasi-identifier.
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

    def score_risks(table: Any) -> Scores:
        return score(table, MEASURE, columns=known[:1], known=known, weights=weights, missing=missing)

    if is_dask(table):
        check_dask_frame(table)
        request.pick(list(table.columns))
        return _on_dask(score_risks(table)[MEASURE][known[0]], table[household], household)
    frame = open_table(table, request.pick, choose_engine(device_for(table)).frames)
    request.pick(frame.names)
    with frame.active():
        column = encode_column(household, frame.column(frame.names.index(household))).on_host()
    check_households(household, column.missing_rows)
    risks = on_host(score_risks(frame).array(MEASURE)[0])
    by_code = risks_by_code(sum_households(risks, np.ones(len(risks), np.int64), column.codes))
    with frame.active():
        return frame.series(by_code[column.codes], NAME)


def _on_dask(risks: Any, households: Any, name: Hashable) -> Any:
    """Return the risk of each row's household as a Dask Series.

    risks: the individual risk of each row. households: the household of each row. name: the column of households.

    Sums of partitions are added up to sums of the table, which then give each row its risk.
    """
    import dask.dataframe as dd
    import pandas as pd

    meta = pd.DataFrame({"upper": [0], "lower": [0]})
    sums = dd.map_partitions(_sums_of_partition, risks, households, name, align_dataframes=False, meta=meta)
    sums = sums.reduction(_add_up, aggregate=_add_up, combine=_add_up, meta=meta, split_every=FAN_IN)
    (whole,) = sums.to_delayed()
    return dd.map_partitions(_risks_of_partition, households, whole, align_dataframes=False, meta=(NAME, "f8"))


def _sums_of_partition(risks: Any, households: Any, name: Hashable) -> pd.DataFrame:
    """Return the sums over the rows of each household in a partition, with the households as the index."""
    import pandas as pd

    codes, labels = pd.factorize(_on_host(households))
    check_households(name, int((codes < 0).sum()))
    upper, lower = np.zeros(len(labels), np.int64), np.zeros(len(labels), np.int64)
    kernels.add_safety(_on_host(risks).to_numpy(), np.ones(len(codes), np.int64), codes, upper, lower)
    return pd.DataFrame({"upper": upper, "lower": lower}, index=labels)


def _add_up(sums: pd.DataFrame) -> pd.DataFrame:
    """Add up the sums of each household over several partitions, without an overflow."""
    return sums.groupby(level=0).sum().clip(upper=int(kernels.MOST_UPPER))


def _risks_of_partition(households: Any, sums: pd.DataFrame) -> Any:
    """Return for each row of a partition the risk of its household. sums: of all households of the table."""
    import pandas as pd

    by_household = np.empty(len(sums))
    kernels.household_risks(sums["upper"].to_numpy(), sums["lower"].to_numpy(), by_household)
    place = sums.index.get_indexer(pd.Index(_on_host(households)))
    return open_frame(households.to_frame()).series(by_household[place], NAME)


def _on_host(series: Any) -> Any:
    """Return a column of a partition as a pandas Series."""
    return series.to_pandas() if hasattr(series, "to_pandas") else series
