"""Measures of how far classes are from the table, each as a function: t-closeness, likeness, delta-disclosure."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..utils.docs import documented_as
from ..utils.validation import Columns
from .anonymity import alpha_k_anonymity, assess_models


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
    return assess_models(
        table, quasi_identifiers, sensitive, "t", distance=distance, weights=weights, missing=missing
    ).worst("t")


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
    return assess_models(table, quasi_identifiers, sensitive, "basic_beta", weights=weights, missing=missing).worst(
        "basic_beta"
    )


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
    return assess_models(table, quasi_identifiers, sensitive, "enhanced_beta", weights=weights, missing=missing).worst(
        "enhanced_beta"
    )


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
    return assess_models(table, quasi_identifiers, sensitive, "delta", weights=weights, missing=missing).worst("delta")
