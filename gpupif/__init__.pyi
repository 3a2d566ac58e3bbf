"""The public names of gpupif: the only list; `__init__.py` imports each on first use.

Functions that answer a question are here; treatments, models, measures of information, results, and errors are in
modules of their own.
"""

from . import datasets as datasets
from . import errors as errors
from . import information as information
from . import models as models
from . import nightly as nightly
from . import piflib as piflib
from . import release as release
from . import results as results
from . import treatments as treatments
from ._version import __version__ as __version__
from .attack.attackers import AnyKnown as AnyKnown
from .attack.population import Population as Population
from .attack.roles import read_roles as read_roles
from .comparison.compare import compare as compare
from .disclosure.global_risk import global_risk as global_risk
from .disclosure.risk import risk as risk
from .errors import GpupifError as GpupifError
from .errors import InputError as InputError
from .hierarchies.open import read_hierarchies as read_hierarchies
from .inspection.inspect import inspect as inspect
from .marginals.quasi_identifiers import quasi_identifiers as quasi_identifiers
from .marginals.toxic_pairs import toxic_pairs as toxic_pairs
from .protection.advise import advise as advise
from .protection.protect import protect as protect
from .release.audit import audit as audit
from .release.ledger import Budget as Budget
from .release.randomized_response import randomized_response as randomized_response
from .release.table_audit import audit_table as audit_table
from .release.tables import tables as tables
from .results.open import open_scores as open_scores
from .results.scores import Scores as Scores
from .scoring.files import score_files as score_files
from .scoring.score import score as score
from .special_uniques.suda import suda as suda
from .treatment.plan import Plan as Plan
from .treatment.treat import treat as treat
from .treatment.treat_files import treat_files as treat_files
from .utils.config import config as config
from .utils.config import set_config as set_config
