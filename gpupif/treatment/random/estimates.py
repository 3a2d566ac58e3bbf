"""How often values stood in a table before they were randomised, from the table that came out."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InputError
from ...utils.validation import brief
from ..base import ColumnValues
from .transitions import Domain, Transitions


def estimate(column: Hashable, values: ColumnValues, domain: Domain, transitions: Transitions) -> pd.DataFrame:
    """One row for each value that was drawn for: value, share, standard_error and rows (the share of all, in rows).

    values: of the treated column. Shares are unbiased, so that some may be below 0 or above 1; they are of the rows
    with a value where missing ones were left alone. Raises InputError where nothing can be estimated.
    """
    labels = domain.labels
    found = values.labels if values.labels.type == labels.type else values.labels.cast(labels.type)
    places = pc.index_in(found, labels)
    if places.null_count:
        other = found.filter(pc.is_null(places))[0].as_py()
        raise InputError(
            f"estimates: column {column!r} has {brief(other)}, which is not among the {len(labels):,} values that were "
            "randomised. Estimates are of the column as it was randomised; treat it no further before."
        )
    counts = np.zeros(domain.states, np.int64)
    counts[places.to_numpy()] = values.counts
    counts[-1] = values.missing
    counts = counts[: domain.randomised]
    rows = int(counts.sum())
    if not rows:
        raise InputError(f"estimates: column {column!r} has no rows with a value.")
    try:
        shares, errors = transitions.estimated(counts / rows, rows)
    except np.linalg.LinAlgError:
        raise InputError(
            f"estimates: what column {column!r} has now does not depend enough on what it had to tell that. "
            "Keep more: keep= above 0, or a matrix that can be inverted."
        ) from None
    known = pa.concat_arrays([labels, pa.nulls(domain.randomised - len(labels), labels.type)])
    return pd.DataFrame(
        {"value": known.to_pandas(), "share": shares, "standard_error": errors, "rows": shares * rows},
    )
