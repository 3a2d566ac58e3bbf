"""The counts of combinations of sets of columns, and their uses: entropies, toxic pairs, quasi-identifiers."""
