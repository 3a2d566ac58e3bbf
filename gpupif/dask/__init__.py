"""Scoring on Dask: tables spread over the workers of a cluster, and lazy scores."""
