"""Releases: counts, answers and workloads of queries that may leave the building."""
