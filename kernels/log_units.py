"""The unit of logarithms, which are whole numbers: apart, so that it can be read without compiling anything."""

from __future__ import annotations

# Logarithms to base 2 are in units of 2^-LOG_BITS bits.
LOG_BITS = 56
# Where they do not fit into 64 bits: those of floats of any size do in units of 2^-COARSE_LOG_BITS.
COARSE_LOG_BITS = 52
# Probabilities from here on have logarithms that fit.
LEAST_FINE = 2.0**-60
