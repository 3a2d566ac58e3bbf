"""The disclosure measures as functions, one for each: k-anonymity, (alpha,k)-anonymity, l-diversity and others."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal, NamedTuple, overload

from ..errors import InputError
from ..utils.docs import documented_as
from ..utils.validation import Columns, check_word
from .assess import assess
from .models import MODELS
from .request import RiskRequest
from .risk_search import Assessment

KINDS = ("distinct", "entropy", "recursive")


class AlphaK(NamedTuple):
    """Alpha and k of (alpha,k)-anonymity. alpha: share in (0, 1]. k: rows."""

    alpha: float
    k: int


class Recursive(NamedTuple):
    """The c and l of recursive (c,l)-diversity, which holds for l and any greater c.

    c: ratio above 0, infinite if the measure holds for no c. l: number of values.
    """

    c: float
    l: int  # noqa: E741 (the name that the measure has)


def k_anonymity(table: Any, quasi_identifiers: Columns, *, weights: Hashable = None, missing: str = "category") -> int:
    """Return k of k-anonymity: the rows of the smallest equivalence class.

    An equivalence class is all rows that agree on all quasi-identifiers.

    Parameters
    ----------
    table:
        As in `gpupif.score`: a pandas, Polars or cuDF DataFrame, a pyarrow Table, or the path of a file, a folder or a
        pattern, of which only the needed columns are read. Or a Dask DataFrame of pandas or cuDF partitions: its
        workers compute at once, and only the result comes to the client. Files that do not fit into memory are read in
        streams and cut into partitions; the result is the same (see `gpupif.config`).
    quasi_identifiers:
        Columns that an attacker may know of a person: a list or tuple of names, or a single name. A tuple that is the
        name of a column is that column.
    weights:
        A column with the sampling weight of each row: the number of people that the row stands for, 0 or more, as in
        `gpupif.score`. k still counts rows. Shares of sensitive values, in classes and in the table, then count people,
        and rows of weight 0 are in no class. Default: none.
    missing:
        "category" (default): missing values are one value of their own; "error": refuse them. "wildcard": a missing
        value in a quasi-identifier matches every value, as in `gpupif.score`, and a missing sensitive value is unknown.
        The class of a row is then all rows that match the row, so classes overlap; all distinct rows have to fit into
        memory together.

    Returns
    -------
    int
        Rows, from 1 to the rows of the table. All sizes of classes: ``gpupif.risk(...).classes``.

    Raises
    ------
    InputError
        No rows, no such column (ColumnNotFoundError), an empty list, missing values under "error", values that are no
        categories (ColumnTypeError).
    TableReadError, OutputError, DeviceError
        As `gpupif.score`.

    Warns
    -----
    NearlyUniqueWarning
        A quasi-identifier with different values in at least 90 % of the rows.

    References
    ----------
    Sweeney 2002, k-Anonymity: a model for protecting privacy.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"age": ["20s", "20s", "30s", "30s", "30s"], "sex": ["f", "f", "f", "m", "m"]})
    >>> gpupif.models.k_anonymity(people, "age"), gpupif.models.k_anonymity(people, ["age", "sex"])
    (2, 1)

    """
    return int(_worst("k", table, quasi_identifiers, None, weights=weights, missing=missing))


@documented_as(k_anonymity)
def alpha_k_anonymity(
    table: Any, quasi_identifiers: Columns, sensitive: Columns, *, weights: Hashable = None, missing: str = "category"
) -> AlphaK:
    """Return alpha and k of (alpha,k)-anonymity: no sensitive value has a share above alpha of an equivalence class.

    Parameters
    ----------
    sensitive:
        The column of a sensitive attribute, or a list of such columns.

    Returns
    -------
    AlphaK
        A named tuple (alpha, k). alpha: the highest share of a value in a class, in (0, 1], over all attributes (each
        attribute: ``gpupif.risk(...).attributes``). k: as `k_anonymity`.

    Raises
    ------
    InputError
        As `gpupif.models.k_anonymity`; a sensitive attribute that is a quasi-identifier or has the same value in all
        rows.
    TableReadError, DeviceError
        As `gpupif.score`.

    References
    ----------
    Wong, Li, Fu & Wang 2006, (alpha, k)-Anonymity: an enhanced k-anonymity model for privacy preserving data
    publishing; for every sensitive value.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"age": ["20s"] * 3 + ["30s"] * 4, "ill": ["flu", "flu", "hiv"] + ["flu", "hiv"] * 2})
    >>> gpupif.models.alpha_k_anonymity(people, "age", "ill")
    AlphaK(alpha=0.6666666666666666, k=3)

    """
    result = _assess_models(table, quasi_identifiers, sensitive, "alpha", "k", weights=weights, missing=missing)
    return AlphaK(result.worst("alpha"), int(result.worst("k")))


@overload
def l_diversity(
    table: Any,
    quasi_identifiers: Columns,
    sensitive: Columns,
    kind: Literal["distinct"] = ...,
    *,
    l: None = ...,  # noqa: E741
    weights: Hashable = ...,
    missing: str = ...,
) -> int: ...


@overload
def l_diversity(
    table: Any,
    quasi_identifiers: Columns,
    sensitive: Columns,
    kind: Literal["entropy"],
    *,
    l: None = ...,  # noqa: E741
    weights: Hashable = ...,
    missing: str = ...,
) -> float: ...


@overload
def l_diversity(
    table: Any,
    quasi_identifiers: Columns,
    sensitive: Columns,
    kind: Literal["recursive"],
    *,
    l: int | None = ...,  # noqa: E741
    weights: Hashable = ...,
    missing: str = ...,
) -> Recursive: ...


@documented_as(alpha_k_anonymity)
def l_diversity(
    table: Any,
    quasi_identifiers: Columns,
    sensitive: Columns,
    kind: str = "distinct",
    *,
    l: int | None = None,  # noqa: E741
    weights: Hashable = None,
    missing: str = "category",
) -> int | float | Recursive:
    """Return l of l-diversity: the number of well represented values of a sensitive attribute in every class.

    Parameters
    ----------
    kind:
        "distinct" (default): the fewest different values of a class. "entropy": l such that the lowest entropy of the
        values of a class is log l. "recursive": c of recursive (c,l)-diversity, r_1 < c (r_l + r_{l+1} + ... + r_m),
        with r_1 to r_m the counts of a class's values, the highest first.
    l:
        For "recursive" only: a whole number from 1 on. Default: the distinct l of the table, the lowest over all
        sensitive attributes.

    Returns
    -------
    int
        "distinct": values, from 1.
    float
        "entropy": effective values, from 1.0 (some class has a single value) to the distinct l. A number within a
        relative 1e-12 of a whole number is that number.
    Recursive
        "recursive": a named tuple (c, l); the measure holds for any greater c. c is infinite if some class has fewer
        than l values: the measure holds for no c. For l = 1, c is the highest share of a value.

    With several attributes the value of highest risk is returned; each attribute: ``gpupif.risk(...).attributes``.

    Raises
    ------
    InputError
        As `gpupif.models.alpha_k_anonymity`; an unknown kind, l with another kind, or an l that no class can have.
    TableReadError, DeviceError
        As `gpupif.score`.

    References
    ----------
    Machanavajjhala, Kifer, Gehrke & Venkitasubramaniam 2007, l-Diversity: privacy beyond k-anonymity, section 4.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> ill = ["flu", "flu", "flu", "hiv", "asthma"] + ["flu", "hiv"]
    >>> people = pd.DataFrame({"age": ["20s"] * 5 + ["30s"] * 2, "ill": ill})
    >>> gpupif.models.l_diversity(people, "age", "ill"), gpupif.models.l_diversity(people, "age", "ill", "entropy")
    (2, 2.0)
    >>> gpupif.models.l_diversity(people, "age", "ill", "recursive")
    Recursive(c=1.5, l=2)

    """
    check_word("kind", kind, KINDS)
    if l is not None and kind != "recursive":
        raise InputError(f"l: expected with kind='recursive' only, got it with kind={kind!r}. Leave it out.")
    name = {"distinct": "distinct_l", "entropy": "entropy_l", "recursive": "recursive_c"}[kind]
    result = _assess_models(table, quasi_identifiers, sensitive, name, l_values=l, weights=weights, missing=missing)
    return Recursive(result.worst(name), result.l_values) if kind == "recursive" else result.worst(name)


@documented_as(alpha_k_anonymity)
def t_closeness(
    table: Any,
    quasi_identifiers: Columns,
    sensitive: Columns,
    distance: Any = None,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Return t of t-closeness: the longest distance between a sensitive attribute's distributions in class and table.

    The distance of two distributions is the earth mover's distance. Distances of values are scaled so that the longest
    is 1.

    Parameters
    ----------
    distance:
        The distance of two values. "ordered": the number of values from one to the other in the order of the values
        that occur, over the highest such number (the paper's ordered distance). "nominal": 1 for any two values (equal
        distance). A list of all values: "ordered", in the order of the list. A hierarchy, ``{value: [names of the
        groups that the value is in, the narrowest first]}``: the level of the narrowest group that both values are in,
        over the number of levels (hierarchical distance). The path of a .csv or .json file, as in `gpupif.score`. Or a
        dictionary of these by sensitive attribute. Default: "ordered" for numbers, dates, times, booleans and ordered
        categories of a frame (files are read without categories), "nominal" for other values. Missing values come last
        in an order.

    Returns
    -------
    float
        From 0.0 (every class is distributed as the table is) to below 1. With several attributes the highest; each
        attribute: ``gpupif.risk(...).attributes``.

    Raises
    ------
    InputError
        As `gpupif.models.alpha_k_anonymity`; "ordered" for values without an order, a list or hierarchy that lacks a
        value, a hierarchy that is no tree.
    TableReadError, DeviceError
        As `gpupif.score`.

    References
    ----------
    Li, Li & Venkatasubramanian 2007, t-Closeness: privacy beyond k-anonymity and l-diversity, sections 4 and 5.

    Examples
    --------
    Salaries of three, six and nine thousand are equally frequent in the table, and not in its two classes:

    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"age": ["20s"] * 3 + ["30s"] * 3, "salary": [3, 3, 6, 6, 9, 9]})
    >>> round(gpupif.models.t_closeness(people, "age", "salary"), 4)
    0.3333
    >>> round(gpupif.models.t_closeness(people, "age", "salary", "nominal"), 4)
    0.3333

    """
    return _worst("t", table, quasi_identifiers, sensitive, distance=distance, weights=weights, missing=missing)


@documented_as(alpha_k_anonymity)
def basic_beta_likeness(
    table: Any, quasi_identifiers: Columns, sensitive: Columns, *, weights: Hashable = None, missing: str = "category"
) -> float:
    """Return beta of basic beta-likeness: the highest relative rise of a sensitive value's frequency in a class.

    If p is the frequency of a value in the table and q in a class, beta is the highest (q - p) / p.

    Returns
    -------
    float
        0.0 (every class is distributed as the table is) and up. With several attributes the highest; each attribute:
        ``gpupif.risk(...).attributes``.

    References
    ----------
    Cao & Karras 2012, Publishing microdata with a robust privacy guarantee, definition 2.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"age": ["20s"] * 4 + ["30s"] * 4, "ill": ["flu"] * 3 + ["hiv"] + ["flu"] * 4})
    >>> gpupif.models.basic_beta_likeness(people, "age", "ill")
    1.0

    """
    return _worst("basic_beta", table, quasi_identifiers, sensitive, weights=weights, missing=missing)


@documented_as(alpha_k_anonymity)
def enhanced_beta_likeness(
    table: Any, quasi_identifiers: Columns, sensitive: Columns, *, weights: Hashable = None, missing: str = "category"
) -> float:
    """Return beta of enhanced beta-likeness: basic beta-likeness in which no value may rise by more than -ln p.

    If p is the frequency of a value in the table and q in a class, (q - p) / p is at most min(beta, -ln p). Each value
    has its own bound.

    Returns
    -------
    float
        The least beta for which the measure holds, from 0.0. Infinite if it holds for no beta: some value rises by more
        than -ln p. With several attributes the highest; each attribute: ``gpupif.risk(...).attributes``.

    References
    ----------
    Cao & Karras 2012, Publishing microdata with a robust privacy guarantee, definition 3.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"age": ["20s"] * 4 + ["30s"] * 4, "ill": ["flu"] * 3 + ["hiv"] + ["flu"] * 4})
    >>> gpupif.models.enhanced_beta_likeness(people, "age", "ill")
    inf
    >>> people.loc[4, "ill"] = "hiv"
    >>> gpupif.models.enhanced_beta_likeness(people, "age", "ill")
    0.0

    """
    return _worst("enhanced_beta", table, quasi_identifiers, sensitive, weights=weights, missing=missing)


@documented_as(alpha_k_anonymity)
def delta_disclosure(
    table: Any, quasi_identifiers: Columns, sensitive: Columns, *, weights: Hashable = None, missing: str = "category"
) -> float:
    """Return delta of delta-disclosure privacy: the highest |ln(q / p)| of a sensitive value in a class.

    p is the frequency of a value in the table, q in the class. Values that a class lacks are left out. By the letter of
    the definition they would make delta infinite, although they only rule out a value.

    Returns
    -------
    float
        Nats (natural logarithm), 0.0 (every class is distributed as the table is) and up. The measure holds for any
        greater delta. With several attributes the highest; each attribute: ``gpupif.risk(...).attributes``.

    References
    ----------
    Brickell & Shmatikov 2008, The cost of privacy: destruction of data-mining utility in anonymized data publishing,
    section 4.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"age": ["20s"] * 4 + ["30s"] * 4, "ill": ["flu"] * 3 + ["hiv"] + ["flu"] * 4})
    >>> round(gpupif.models.delta_disclosure(people, "age", "ill"), 4)
    0.6931

    """
    return _worst("delta", table, quasi_identifiers, sensitive, weights=weights, missing=missing)


def _assess_models(table: Any, quasi_identifiers: Any, sensitive: Any, *models: str, **options: Any) -> Assessment:
    """Return the assessment of some disclosure measures. options: of `RiskRequest.from_arguments`.

    Raises InputError without a sensitive attribute, except for k alone.
    """
    if sensitive is None and models != ("k",):
        raise InputError("sensitive: expected a column, or a list of columns; got None.")
    wanted = [MODELS[name] for name in models]
    return assess(table, RiskRequest.from_arguments(table, quasi_identifiers, sensitive, wanted, **options))


def _worst(model: str, table: Any, quasi_identifiers: Any, sensitive: Any, **options: Any) -> float:
    """Return the value of highest risk of a disclosure measure, over the attributes; see `_assess_models`."""
    return _assess_models(table, quasi_identifiers, sensitive, model, **options).worst(model)
