"""The unit of logarithms, which are whole numbers. Importing this module compiles nothing."""

from __future__ import annotations

# Logarithms to base 2 are in units of 2^-LOG_BITS bits.
LOG_BITS = 56
# In units of 2^-COARSE_LOG_BITS, the logarithm of any float fits into 64 bits.
COARSE_LOG_BITS = 52
# Logarithms of probabilities of at least LEAST_FINE fit into 64 bits in units of 2^-LOG_BITS.
LEAST_FINE = 2.0**-60
