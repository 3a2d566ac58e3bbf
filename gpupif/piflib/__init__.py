"""Drop-in for piflib 0.1.1 (CSIRO Data61): `import gpupif.piflib as piflib` serves an existing script.

The function names, parameters and position-keyed dictionaries are piflib's; the values are equal to 1e-12 where
piflib's are right. Where it is not, this module differs, on purpose:

* Weighted CIG: piflib rounds both entropies of the weight to 2 decimals, and the result again. Here nothing is rounded.
* Index: results carry the index of the table; piflib numbers the rows anew.
* Missing values (None, NaN, NA, NaT) are one value of their own; in piflib each NaN may be a value of its own, or all
  are one, by the type of the column, and the entropy functions drop them, so that probabilities do not sum to 1.
* Priors and accuracies keyed by column name are used; piflib ignores them silently. A key that is neither a position
  nor a column name is an error.
* A prior that does not sum to 1 or misses a value, and an accuracy outside [0, 1], are errors (`gpupif.errors`);
  piflib computes with them, or fails with a KeyError or AssertionError.
* An empty table is an `InputError`, in piflib an IndexError.
* `samples` of `compute_cigs` smaller than the number of columns is an `InputError`, in piflib a ZeroDivisionError.
* Entropies of a table with one column and conditional entropies given no column are defined; piflib fails.
* Values that differ only in type (1, 1.0, True) are one value, as in piflib; so are 0.0 and -0.0.
* Of the inner workings (`binom`, `sample_is`, `calculate_kl`, `find_kls_for_features`, ...) only
  `data_util.calculate_distribution` and `data_util.complete_feature_priors` are here.
* Keys of `compute_posterior_distributions` are built of plain Python values: "(1, 'a')", not "(np.int64(1), 'a')".
"""

from . import data_util, entropy, pif_calculator
from .pif_calculator import (
    compute_cigs,
    compute_csfs,
    compute_pif,
    compute_posterior_distributions,
    compute_weighted_cigs,
)

__all__ = [
    "compute_cigs",
    "compute_csfs",
    "compute_pif",
    "compute_posterior_distributions",
    "compute_weighted_cigs",
    "data_util",
    "entropy",
    "pif_calculator",
]
