"""Entropies of columns, in bits, and the information that columns have about each other."""

from .marginals.entropy import conditional_entropy as conditional_entropy
from .marginals.entropy import dual_total_correlation as dual_total_correlation
from .marginals.entropy import entropy as entropy
from .marginals.entropy import mutual_information as mutual_information
from .marginals.entropy import residual_entropy as residual_entropy
from .marginals.entropy import total_correlation as total_correlation
