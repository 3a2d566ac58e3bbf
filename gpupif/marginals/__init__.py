"""Combinations of sets of columns counted: entropies, toxic pairs, quasi-identifiers."""
