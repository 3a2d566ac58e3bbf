"""Measures of what equivalence classes hold, each as a function: k-anonymity, (alpha,k)-anonymity, l-diversity."""

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
    """Alpha and k of (alpha,k)-anonymity. alpha: share in (0, 1]; k: rows."""

    alpha: float
    k: int


class Recursive(NamedTuple):
    """C and l of recursive (c,l)-diversity: it holds for l and any greater c; c is infinite if it holds for none."""

    c: float
    l: int  # noqa: E741 (the name that the measure has)


def k_anonymity(
    table: Any,
    quasi_identifiers: Columns,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> int:
    """K of k-anonymity: rows of the smallest equivalence class, rows that agree on all quasi-identifiers.

    Parameters
    ----------
    table:
        As of `gpupif.score`: a pandas, Polars or cuDF DataFrame, a pyarrow Table, or the path of a file, a folder or a
        pattern, of which only the columns that are needed are read. Or a Dask DataFrame, of pandas or cuDF partitions:
        it is computed at once, by the workers; only what is found comes to the client. Files that do not fit into
        memory are read in streams and looked at in parts; what is found is the same (see `gpupif.config`).
    quasi_identifiers:
        Columns that an attacker may know of a person, a list or tuple of names; a single one may stand alone, also one
        whose name is a tuple.
    weights:
        A column with the sampling weight of each row: how many people of the population it stands for, any number of 0
        or more, as of `gpupif.score`. k still counts rows. Shares of sensitive values, in classes and in the table, are
        then of people, and rows of weight 0 are in no class.
    missing:
        "category": missing values are one value of their own; "error": refuse them. "wildcard": in a quasi-identifier
        they match every value, as of `gpupif.score`: the class of a row is all rows that match it, so that classes
        overlap, and a sensitive value that is missing is unknown. Different rows then have to fit into memory together.

    Returns
    -------
    int
        Rows, from 1 to those of the table. All sizes of classes: ``gpupif.risk(...).classes``.

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
        A quasi-identifier in which at least 90 % of the rows have different values.

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
    table: Any,
    quasi_identifiers: Columns,
    sensitive: Columns,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> AlphaK:
    """(alpha,k)-anonymity: k-anonymity, and no sensitive value has a share above alpha of an equivalence class.

    Parameters
    ----------
    sensitive:
        A sensitive attribute, a column, or a list of several.

    Returns
    -------
    AlphaK
        A named tuple (alpha, k): the highest share of any value of a class, in (0, 1], of several attributes the worst
        (each: ``gpupif.risk(...).attributes``); k as `k_anonymity`.

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
    found = _assess_models(table, quasi_identifiers, sensitive, "alpha", "k", weights=weights, missing=missing)
    return AlphaK(found.worst("alpha"), int(found.worst("k")))


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
    """l-diversity: how many values a sensitive attribute has, well represented, in every equivalence class.

    Parameters
    ----------
    kind:
        "distinct": the fewest different values of a class. "entropy": l such that the lowest entropy of the values of
        a class is log l. "recursive": c of recursive (c,l)-diversity, r_1 < c (r_l + r_{l+1} + ... + r_m), with r_1 to
        r_m the counts of a class's values, the highest first.
    l:
        Of "recursive": a whole number from 1 on; default the distinct l of the table, over all sensitive attributes.

    Returns
    -------
    int
        "distinct": values, from 1.
    float
        "entropy": effective values, 1.0 (some class has a single value) to the distinct l; within 1e-12 of a whole
        number it is that number.
    Recursive
        "recursive": a named tuple (c, l); the measure holds for any greater c, and for none where c is infinite: some
        class has fewer than l values. For l = 1, c is the highest share of a value.

    Of several attributes the worst; each: ``gpupif.risk(...).attributes``.

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
    found = _assess_models(table, quasi_identifiers, sensitive, name, l_values=l, weights=weights, missing=missing)
    return Recursive(found.worst(name), found.l_values) if kind == "recursive" else found.worst(name)


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
    """T of t-closeness: how far the distribution of a sensitive attribute in a class is from that in the table.

    The distance of distributions is the earth mover's, that of values is scaled so that the longest is 1.

    Parameters
    ----------
    distance:
        How far two values are apart. "ordered": by how many places, of those that occur, over the most there are (the
        paper's ordered distance). "nominal": any two are 1 apart (equal distance). A list of all values: ordered, in
        that order. A hierarchy, ``{value: [names of what it is part of, the narrowest first]}``: the level of the
        narrowest that both are part of, over all levels (hierarchical distance). The path of a .csv or .json file, as
        of `gpupif.score`. Or a dictionary of these by sensitive attribute. Default: numbers, dates, times, booleans and
        ordered categories of a frame (those of files are not read as such) are "ordered", others "nominal". Missing
        values come last in an order.

    Returns
    -------
    float
        From 0.0 (every class is distributed as the table is) to below 1. Of several attributes the highest; each:
        ``gpupif.risk(...).attributes``.

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
    Salaries of three, six and nine thousand, evenly distributed but for the two classes:

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
    table: Any,
    quasi_identifiers: Columns,
    sensitive: Columns,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Beta of basic beta-likeness: by what share of itself a sensitive value's frequency rises in a class.

    With p the frequency of a value in the table and q in a class, the highest (q - p) / p.

    Returns
    -------
    float
        From 0.0 (every class is distributed as the table is). Of several attributes the highest; each:
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
    table: Any,
    quasi_identifiers: Columns,
    sensitive: Columns,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Beta of enhanced beta-likeness: as basic beta-likeness, but no value may rise by more than -ln p either.

    With p the frequency of a value in the table and q in a class, (q - p) / p is at most min(beta, -ln p): a bound for
    each value of its own.

    Returns
    -------
    float
        The least beta for which it holds, from 0.0; infinite where it holds for none: some value rises by more than
        -ln p. Of several attributes the highest; each: ``gpupif.risk(...).attributes``.

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
    table: Any,
    quasi_identifiers: Columns,
    sensitive: Columns,
    *,
    weights: Hashable = None,
    missing: str = "category",
) -> float:
    """Delta of delta-disclosure privacy: the highest |ln(q / p)| of a sensitive value in a class.

    With p the frequency of a value in the table and q in the class. Values that a class lacks are left out: by the
    letter of the definition they would make delta infinite, and they do no more than rule out a value.

    Returns
    -------
    float
        Nats (natural logarithm), from 0.0 (every class is distributed as the table is); the measure holds for any
        greater delta. Of several attributes the highest; each: ``gpupif.risk(...).attributes``.

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
    """Return the assessment of some disclosure measures; options: of `RiskRequest.from_arguments`.

    Raises InputError without a sensitive attribute, except for k alone.
    """
    if sensitive is None and models != ("k",):
        raise InputError("sensitive: expected a column, or a list of columns; got None.")
    wanted = [MODELS[name] for name in models]
    return assess(table, RiskRequest.from_arguments(table, quasi_identifiers, sensitive, wanted, **options))


def _worst(model: str, table: Any, quasi_identifiers: Any, sensitive: Any, **options: Any) -> float:
    """Return the worst value of a disclosure measure, over the attributes; see `_assess_models`."""
    return _assess_models(table, quasi_identifiers, sensitive, model, **options).worst(model)
