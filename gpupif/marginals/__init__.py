"""Combinations of sets of columns counted: entropies and toxic pairs."""
