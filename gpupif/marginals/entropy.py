"""Entropies of columns of a table, in bits: how much its columns tell, together and about each other."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..utils.docs import documented_as
from ..utils.validation import Columns
from .column_sets import ColumnSets, measure_sets


def entropy(
    table: Any,
    columns: Columns | None = None,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Entropy of a column, or joint entropy of several: H(X) = -sum of p(x) log2 p(x).

    The information, on average over the rows, that the values of these columns carry together: each bit halves the
    rows that a person can be among.

    Parameters
    ----------
    table:
        As of `gpupif.score`: a pandas, Polars or cuDF DataFrame, a pyarrow Table, the path of a file, a folder or a
        pattern, or a Dask DataFrame, which is computed at once. Files that do not fit into memory are counted in parts
        on disk; what comes out is the same, to the last bit, there and on every device (see `gpupif.config`).
    columns:
        A column, or a list or tuple of columns; default all, but for that of the weights. A tuple that is a column's
        name is that column.
    weights:
        A column with the sampling weight of each row, as of `gpupif.score`: p(x) is then a share of weights, of the
        people that the rows stand for, and a row of weight 0 is as if it was not there.
    missing:
        "category": missing values are one value of their own; "error": refuse them. (Not "wildcard": rows that match
        several values are in all of them, and their shares are no distribution.)

    Returns
    -------
    float
        Bits, from 0 (one value, exactly 0) to log2 n for n rows (all of them different).

    Raises
    ------
    InputError
        No rows, no such column, missing values under "error", values that are no categories (ColumnTypeError), weights
        that are missing, negative or infinite, or sum to 0; too little memory.
    TableReadError
        A file that cannot be read, or changes meanwhile.
    DeviceError
        A GPU that was asked for (`gpupif.config`) and cannot be used, or that fails.

    References
    ----------
    Cover and Thomas, Elements of Information Theory, 2nd edition, sections 2.1 and 2.2.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"sex": ["f", "f", "m", "m"], "eyes": ["blue", "brown", "brown", "brown"]})
    >>> gpupif.information.entropy(people, "sex")
    1.0
    >>> gpupif.information.entropy(people, ["sex", "eyes"])
    1.5

    """
    return measure_sets(ColumnSets.entropy, table, weights, missing, columns=columns)


@documented_as(entropy)
def conditional_entropy(
    table: Any,
    columns: Columns,
    given: Columns,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Conditional entropy: H(X | Y) = H(X, Y) - H(Y), what X still tells somebody who knows Y.

    Parameters
    ----------
    columns, given:
        X and Y: a column or a list of columns each. An empty list as `given`: nothing is known.

    Returns
    -------
    float
        Bits, from 0 (exactly 0 where Y determines X) to H(X) (X and Y independent).

    References
    ----------
    Cover and Thomas, Elements of Information Theory, 2nd edition, section 2.2.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"sex": ["f", "f", "m", "m"], "eyes": ["blue", "brown", "brown", "brown"]})
    >>> gpupif.information.conditional_entropy(people, "eyes", given="sex")
    0.5

    """
    return measure_sets(ColumnSets.conditional, table, weights, missing, columns=columns, given=given)


@documented_as(entropy)
def mutual_information(
    table: Any,
    a: Columns,
    b: Columns,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Mutual information: I(A; B) = H(A) + H(B) - H(A, B), what each tells of the other.

    Parameters
    ----------
    a, b:
        A column or a list of columns each.

    Returns
    -------
    float
        Bits, from 0 (exactly 0 where they are independent in the table) to the smaller of H(A) and H(B).

    References
    ----------
    Cover and Thomas, Elements of Information Theory, 2nd edition, sections 2.3 and 2.4.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"sex": ["f", "f", "m", "m"], "eyes": ["blue", "brown", "brown", "brown"]})
    >>> round(gpupif.information.mutual_information(people, "sex", "eyes"), 3)
    0.311

    """
    return measure_sets(ColumnSets.mutual, table, weights, missing, a=a, b=b)


@documented_as(entropy)
def total_correlation(
    table: Any,
    columns: Columns | None = None,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Total correlation: the sum of H(X_i) - H(X_1, ..., X_m), what the columns share, told as often as it is held.

    Returns
    -------
    float
        Bits, from 0 (exactly 0 where all columns are independent of each other) to the sum of all H(X_i) but the
        largest. Of two columns it is their mutual information.

    References
    ----------
    Watanabe, Information theoretical analysis of multivariate correlation, IBM Journal of Research and Development 4
    (1960), 66-82.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> gpupif.information.total_correlation(pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "sum": [0, 1, 1, 0]}))
    1.0

    """
    return measure_sets(ColumnSets.total_correlation, table, weights, missing, columns=columns)


@documented_as(entropy)
def dual_total_correlation(
    table: Any,
    columns: Columns | None = None,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Dual total correlation: H(X_1, ..., X_m) - the sum of H(X_i | all others), the information that columns share.

    Returns
    -------
    float
        Bits, from 0 (exactly 0 where all columns are independent of each other) to H(X_1, ..., X_m) (each column
        follows from the others). Of two columns it is their mutual information.

    References
    ----------
    Han, Nonnegative entropy measures of multivariate symmetric correlations, Information and Control 36 (1978),
    133-156.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> table = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "sum": [0, 1, 1, 0]})
    >>> gpupif.information.dual_total_correlation(table)
    2.0

    """
    return measure_sets(ColumnSets.dual, table, weights, missing, columns=columns)


@documented_as(entropy)
def residual_entropy(
    table: Any,
    columns: Columns | None = None,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Residual entropy: the sum of H(X_i | all others), what only single columns tell.

    With the dual total correlation it makes up the joint entropy (Abdallah and Plumbley call it the residual entropy,
    others erasure entropy).

    Returns
    -------
    float
        Bits, from 0 (exactly 0 where each column follows from the others) to the joint entropy (all independent).

    References
    ----------
    Abdallah and Plumbley, A measure of statistical complexity based on predictive information with application to
    finite spin systems, Physics Letters A 376 (2012), 275-281. Verdu and Weissman, The information lost in erasures,
    IEEE Transactions on Information Theory 54 (2008), 5030-5058.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> gpupif.information.residual_entropy(pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "copy": [0, 1, 0, 1]}))
    1.0

    """
    return measure_sets(ColumnSets.residual, table, weights, missing, columns=columns)
