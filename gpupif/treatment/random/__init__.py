"""Random treatments: values are replaced, moved or swapped by random numbers from a secret key."""
