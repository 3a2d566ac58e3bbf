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
    from .attack.known_subsets import AnyKnown
    from .attack.population import Population
    from .disclosure.anonymity import AlphaK, Recursive, alpha_k_anonymity, k_anonymity, l_diversity
    from .disclosure.classes import ClassRisks, class_risks
    from .disclosure.closeness import basic_beta_likeness, delta_disclosure, enhanced_beta_likeness, t_closeness
    from .disclosure.journalist import PopulationRisks, population_risks
    from .disclosure.population_uniques import PopulationUniques, population_uniques
    from .disclosure.risk import DisclosureRisk, risk
    from .disclosure.uniqueness import Uniqueness, uniqueness
    from .marginals.entropy import (
        conditional_entropy,
        dual_total_correlation,
        entropy,
        mutual_information,
        residual_entropy,
        total_correlation,
    )
    from .marginals.toxic_pairs import ToxicPairs, toxic_pairs
    from .results.attacker_summary import AttackerSummary
    from .results.open import open_scores
    from .results.scores import Scores
    from .results.stored_frame import StoredFrame
    from .results.summary import Summary
    from .scoring.files import score_files
    from .scoring.score import score
    from .special_uniques.suda import SpecialUniques, suda
    from .utils.config import config, set_config

# In a checkout the kernels lie beside this folder; installed, inside it.
if not (Path(__file__).parent / "kernels").is_dir():
    __path__.append(str(Path(__file__).parent.parent))

try:
    __version__ = version("gpupif")
except PackageNotFoundError:
    __version__ = "0+unknown"

__all__ = [
    "AlphaK",
    "AnyKnown",
    "AttackerSummary",
    "ClassRisks",
    "ColumnNotFoundError",
    "ColumnTypeError",
    "DeviceError",
    "DisclosureRisk",
    "GpupifError",
    "InputError",
    "NearlyUniqueWarning",
    "NothingKnownWarning",
    "OutputError",
    "Population",
    "PopulationRisks",
    "PopulationUniques",
    "PriorError",
    "Recursive",
    "Scores",
    "SpecialUniques",
    "StoredFrame",
    "Summary",
    "TableReadError",
    "ToxicPairs",
    "Uniqueness",
    "__version__",
    "alpha_k_anonymity",
    "basic_beta_likeness",
    "class_risks",
    "conditional_entropy",
    "config",
    "datasets",
    "delta_disclosure",
    "dual_total_correlation",
    "enhanced_beta_likeness",
    "entropy",
    "k_anonymity",
    "l_diversity",
    "mutual_information",
    "open_scores",
    "population_risks",
    "population_uniques",
    "residual_entropy",
    "risk",
    "score",
    "score_files",
    "set_config",
    "suda",
    "t_closeness",
    "total_correlation",
    "toxic_pairs",
    "uniqueness",
]

# pandas, pyarrow and numba take a second to import: only who scores waits for them.
_LATER = {
    "Uniqueness": "disclosure.uniqueness",
    "PopulationUniques": "disclosure.population_uniques",
    "PopulationRisks": "disclosure.journalist",
    "ClassRisks": "disclosure.classes",
    "Recursive": "disclosure.anonymity",
    "AlphaK": "disclosure.anonymity",
    "AnyKnown": "attack.known_subsets",
    "Population": "attack.population",
    "config": "utils.config",
    "set_config": "utils.config",
    "score": "scoring.score",
    "score_files": "scoring.files",
    "Scores": "results.scores",
    "StoredFrame": "results.stored_frame",
    "open_scores": "results.open",
    "AttackerSummary": "results.attacker_summary",
    "Summary": "results.summary",
    "class_risks": "disclosure.classes",
    "population_risks": "disclosure.journalist",
    "population_uniques": "disclosure.population_uniques",
    "uniqueness": "disclosure.uniqueness",
    "alpha_k_anonymity": "disclosure.anonymity",
    "basic_beta_likeness": "disclosure.closeness",
    "delta_disclosure": "disclosure.closeness",
    "enhanced_beta_likeness": "disclosure.closeness",
    "k_anonymity": "disclosure.anonymity",
    "l_diversity": "disclosure.anonymity",
    "t_closeness": "disclosure.closeness",
    "risk": "disclosure.risk",
    "DisclosureRisk": "disclosure.risk",
    "datasets": "datasets",
    "piflib": "piflib",
    "entropy": "marginals.entropy",
    "conditional_entropy": "marginals.entropy",
    "mutual_information": "marginals.entropy",
    "total_correlation": "marginals.entropy",
    "dual_total_correlation": "marginals.entropy",
    "residual_entropy": "marginals.entropy",
    "suda": "special_uniques.suda",
    "SpecialUniques": "special_uniques.suda",
    "toxic_pairs": "marginals.toxic_pairs",
    "ToxicPairs": "marginals.toxic_pairs",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from importlib import import_module

        module = import_module(f".{_LATER[name]}", __name__)
        return module if name == _LATER[name] else getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
