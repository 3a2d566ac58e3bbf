"""Random treatments: values that are replaced, moved or swapped by chance, drawn by a secret key."""
