"""Treatments of several columns of numbers at once, and of the ranks of numbers."""
