"""gpupif: privacy risk of every cell of a table, exact, from a tutorial's seven rows to a census."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import (
    ColumnNotFoundError,
    ColumnTypeError,
    DeviceError,
    GpupifError,
    InputError,
    NearlyUniqueWarning,
    NothingKnownWarning,
    OutputError,
    PriorError,
    TableReadError,
)

if TYPE_CHECKING:
    from . import datasets
    from .any_known_scores import AnyKnownScores
    from .cluster.scores import DaskScores
    from .entropies import (
        conditional_entropy,
        dual_total_correlation,
        entropy,
        mutual_information,
        residual_entropy,
        total_correlation,
    )
    from .result import Scores
    from .risk.classes import class_risks, population_risks
    from .risk.estimators import population_uniques
    from .risk.uniqueness import uniqueness
    from .scoring import score
    from .special_uniques import SpecialUniques, suda
    from .summary import Summary
    from .toxic import ToxicPairs, toxic_pairs

# In a checkout the kernels lie beside this folder; installed, inside it.
if not (Path(__file__).parent / "kernels").is_dir():
    __path__.append(str(Path(__file__).parent.parent))

try:
    __version__ = version("gpupif")
except PackageNotFoundError:
    __version__ = "0+unknown"

__all__ = [
    "AnyKnownScores",
    "ColumnNotFoundError",
    "ColumnTypeError",
    "DaskScores",
    "DeviceError",
    "GpupifError",
    "InputError",
    "NearlyUniqueWarning",
    "NothingKnownWarning",
    "OutputError",
    "PriorError",
    "Scores",
    "SpecialUniques",
    "Summary",
    "TableReadError",
    "ToxicPairs",
    "__version__",
    "class_risks",
    "conditional_entropy",
    "datasets",
    "dual_total_correlation",
    "entropy",
    "mutual_information",
    "population_risks",
    "population_uniques",
    "residual_entropy",
    "score",
    "suda",
    "total_correlation",
    "toxic_pairs",
    "uniqueness",
]

# pandas, pyarrow and numba take a second to import: only who scores waits for them.
_LATER = {
    "score": "scoring",
    "Scores": "result",
    "AnyKnownScores": "any_known_scores",
    "DaskScores": "cluster.scores",
    "Summary": "summary",
    "class_risks": "risk.classes",
    "population_risks": "risk.classes",
    "population_uniques": "risk.estimators",
    "uniqueness": "risk.uniqueness",
    "datasets": "datasets",
    "piflib": "piflib",
    "entropy": "entropies",
    "conditional_entropy": "entropies",
    "mutual_information": "entropies",
    "total_correlation": "entropies",
    "dual_total_correlation": "entropies",
    "residual_entropy": "entropies",
    "suda": "special_uniques",
    "SpecialUniques": "special_uniques",
    "toxic_pairs": "toxic",
    "ToxicPairs": "toxic",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        module = import_module(f".{_LATER[name]}", __name__)
        return module if name == _LATER[name] else getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
