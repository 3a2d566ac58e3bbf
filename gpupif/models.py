"""Models of disclosure, each by itself: what `gpupif.risk` finds at once."""

from .disclosure.anonymity import alpha_k_anonymity as alpha_k_anonymity
from .disclosure.anonymity import k_anonymity as k_anonymity
from .disclosure.anonymity import l_diversity as l_diversity
from .disclosure.classes import class_risks as class_risks
from .disclosure.closeness import basic_beta_likeness as basic_beta_likeness
from .disclosure.closeness import delta_disclosure as delta_disclosure
from .disclosure.closeness import enhanced_beta_likeness as enhanced_beta_likeness
from .disclosure.closeness import t_closeness as t_closeness
from .disclosure.game import Game as Game
from .disclosure.household_risk import household_risk as household_risk
from .disclosure.journalist import population_risks as population_risks
from .disclosure.population_uniques import population_uniques as population_uniques
from .disclosure.uniqueness import uniqueness as uniqueness
