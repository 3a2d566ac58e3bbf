"""Helpers that every package uses: checks of arguments, settings, memory, progress, exact sums and entropies."""
