"""The first of the worst equivalence classes of a table: for k, and for distinct l and t of sensitive attributes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..attack.arguments import Arguments
from ..io.temporary_folder import temporary_folder
from ..results.backing import RowExplainer
from ..results.scores import Scores
from ..scoring.files import score_for_now
from .models import MODELS


def worst_classes(
    table: Any,
    scored: Scores,
    known: Sequence[str],
    attributes: Sequence[str],
    weights: str | None,
    temp: Path | None,
) -> list[dict[str, Any]]:
    """Return the measure, attribute, quasi-identifiers and size of each class. k counts rows, whatever their weights.

    table: the input. scored: scores of it, by which the values of a class are read. known: the quasi-identifiers.
    temp: the folder for temporary files.
    """
    worst: list[dict[str, Any]] = []
    explainer = scored._backing.explainer(scored._attackers[0])
    assert isinstance(explainer, RowExplainer)
    for attribute in (None, *attributes):
        models, unit = (["distinct_l", "t"], weights) if attribute else (["k"], None)
        measures = {model: MODELS[model].cell if attribute else "class_size" for model in models}
        names = list(dict.fromkeys(["class_size", *measures.values()]))
        arguments = Arguments.from_user(names, [attribute or known[0]], known=list(known), weights=unit)
        with temporary_folder(temp) as folder:
            of_classes = score_for_now(table, arguments, folder)
            for model, measure in measures.items():
                for cell in of_classes.top(1, by=measure).to_dict("records"):
                    rows = explainer.row_values()
                    code_of = rows.between(cell["row"], cell["row"] + 1)
                    places = {name: scored.columns.index(name) for name in known}
                    values = {name: rows.columns[own].values([int(code_of(own)[0])])[0] for name, own in places.items()}
                    size = {"rows" if unit is None else "people": cell["class_size"]}
                    told = {"measure": MODELS[model].heading or model, "attribute": attribute}
                    worst.append({**told, "quasi_identifiers": values, **size})
    return worst
