"""The document of scores for a report: their summary, the risk landscape, distributions, and more of their cells."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..errors import InputError, NotScoredError
from ..report.figures import FEWEST_ROWS
from ..report.records import document_of
from ..utils.display import as_json
from ..utils.redaction import lower_end
from .landscape import BANDS, csf_histogram, landscape
from .summary import unknown_places

# How many of the riskiest cells a report lists, of tables up to so many rows; of others as many as a summary has, for
# each cell takes a look at the whole table.
CELLS, MOST_ROWS = 100, 1_000_000
# Of tables of more rows, which are read again for it, only the cell's own value is shown before and after.
MOST_EXPLAINED = 20_000_000


def score_document(scores: Any, redact: bool = False) -> dict[str, Any]:
    """Return the document of scores. Scores of a Dask frame are kept meanwhile.

    redact: see `Displayable.verdict`. Figures that need all scores are left out of files of some cells.
    Raises InputError if a part of the rows is missing.
    """
    if not scores._backing.whole:
        raise InputError(
            f"report: {scores.path}: expected the scores of all rows of the table, got those of {scores.rows:,} rows. "
            "Name the folder with all of its files, or score the table again."
        )
    scores = scores.persist()
    summary = scores.summary()
    document = document_of(summary, redact) | {"request": scores.provenance}
    if "columns" in document:
        # Those of most interest come first: what the attacker does not know, and of that the highest FIG.
        unknown = {str(scores.columns[place]) for place in unknown_places(scores.columns, scores.known)}
        if len(unknown) < len(scores.columns):
            document["top_of"] = [str(name) for name in scores.columns if str(name) in unknown]
        # The order of a redacted report tells no more than the means that it shows.
        mean = partial(lower_end, rows=scores.rows) if redact else float
        document["columns"].sort(key=lambda own: (own["column"] not in unknown, -mean(own.get("cig_mean") or 0.0)))
    try:
        each = "value" if scores._knows_values else "cell"
        cells = CELLS if "attackers" in document or scores.rows <= MOST_ROWS else len(document["top"])
        if scores.rows <= MOST_EXPLAINED:
            document["top"] = as_json(scores._top(max(1, cells), None, each, spread=True))
        if "cig" in scores.measures:
            # Small bands are hidden.
            bands = min(BANDS, max(1, scores.rows // (2 * FEWEST_ROWS))) if redact else BANDS
            document["landscape"] = landscape(scores, bands)
        if "csf" in scores.measures:
            document["histograms"] = {"csf": csf_histogram(scores)}
    except NotScoredError:
        return document
    if "attackers" in document:
        # Of the worst scores over all attackers.
        worst = scores.worst.summary()
        document |= {key: value for key, value in worst.to_dict().items() if key in ("columns", "pif")}
    return document
