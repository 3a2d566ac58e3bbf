"""Models of disclosure, each by itself: what `gpupif.risk` finds at once."""

from .disclosure.attack_game import Game as Game
from .disclosure.class_risks import class_risks as class_risks
from .disclosure.household_risk import household_risk as household_risk
from .disclosure.population_risks import population_risks as population_risks
from .disclosure.population_uniques import population_uniques as population_uniques
from .disclosure.privacy_models import alpha_k_anonymity as alpha_k_anonymity
from .disclosure.privacy_models import basic_beta_likeness as basic_beta_likeness
from .disclosure.privacy_models import delta_disclosure as delta_disclosure
from .disclosure.privacy_models import enhanced_beta_likeness as enhanced_beta_likeness
from .disclosure.privacy_models import k_anonymity as k_anonymity
from .disclosure.privacy_models import l_diversity as l_diversity
from .disclosure.privacy_models import t_closeness as t_closeness
from .disclosure.uniqueness import uniqueness as uniqueness
