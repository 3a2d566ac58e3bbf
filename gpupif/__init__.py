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
    from .attacker_summary import AttackerSummary
    from .attackers import AttackerScores
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
    from .risks.anonymity import (
        AlphaK,
        Recursive,
        alpha_k_anonymity,
        k_anonymity,
        l_diversity,
    )
    from .risks.classes import ClassRisks, class_risks
    from .risks.closeness import basic_beta_likeness, delta_disclosure, enhanced_beta_likeness, t_closeness
    from .risks.disclosure import DisclosureRisk, risk
    from .risks.estimators import PopulationUniques, population_uniques
    from .risks.journalist import PopulationRisks, population_risks
    from .risks.uniqueness import Uniqueness, uniqueness
    from .scoring import score
    from .special_uniques import SpecialUniques, suda
    from .stored import StoredAnyKnownScores, StoredAttackerScores, StoredScores
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
    "AlphaK",
    "AnyKnownScores",
    "AttackerScores",
    "AttackerSummary",
    "ClassRisks",
    "ColumnNotFoundError",
    "ColumnTypeError",
    "DaskScores",
    "DeviceError",
    "DisclosureRisk",
    "GpupifError",
    "InputError",
    "NearlyUniqueWarning",
    "NothingKnownWarning",
    "OutputError",
    "PopulationRisks",
    "PopulationUniques",
    "PriorError",
    "Recursive",
    "Scores",
    "SpecialUniques",
    "StoredAnyKnownScores",
    "StoredAttackerScores",
    "StoredScores",
    "Summary",
    "TableReadError",
    "ToxicPairs",
    "Uniqueness",
    "__version__",
    "alpha_k_anonymity",
    "basic_beta_likeness",
    "class_risks",
    "conditional_entropy",
    "datasets",
    "delta_disclosure",
    "dual_total_correlation",
    "enhanced_beta_likeness",
    "entropy",
    "k_anonymity",
    "l_diversity",
    "mutual_information",
    "population_risks",
    "population_uniques",
    "residual_entropy",
    "risk",
    "score",
    "suda",
    "t_closeness",
    "total_correlation",
    "toxic_pairs",
    "uniqueness",
]

# pandas, pyarrow and numba take a second to import: only who scores waits for them.
_LATER = {
    "StoredAnyKnownScores": "stored",
    "StoredAttackerScores": "stored",
    "StoredScores": "stored",
    "Uniqueness": "risks.uniqueness",
    "PopulationUniques": "risks.estimators",
    "PopulationRisks": "risks.journalist",
    "ClassRisks": "risks.classes",
    "Recursive": "risks.anonymity",
    "AlphaK": "risks.anonymity",
    "score": "scoring",
    "Scores": "result",
    "AnyKnownScores": "any_known_scores",
    "AttackerScores": "attackers",
    "AttackerSummary": "attacker_summary",
    "DaskScores": "cluster.scores",
    "Summary": "summary",
    "class_risks": "risks.classes",
    "population_risks": "risks.journalist",
    "population_uniques": "risks.estimators",
    "uniqueness": "risks.uniqueness",
    "alpha_k_anonymity": "risks.anonymity",
    "basic_beta_likeness": "risks.closeness",
    "delta_disclosure": "risks.closeness",
    "enhanced_beta_likeness": "risks.closeness",
    "k_anonymity": "risks.anonymity",
    "l_diversity": "risks.anonymity",
    "t_closeness": "risks.closeness",
    "risk": "risks.disclosure",
    "DisclosureRisk": "risks.disclosure",
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
