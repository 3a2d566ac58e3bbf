"""Releases of differentially private answers: the only list of the public names; `__init__.py` imports each on use."""

from .accounting import Loss as Loss
from .answers import answer as answer
from .answers import counts as counts
from .answers import histogram as histogram
from .answers import mean as mean
from .answers import quantile as quantile
