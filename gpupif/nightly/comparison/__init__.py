"""Comparison of runs: their figures, and the changes of their kept scores."""
