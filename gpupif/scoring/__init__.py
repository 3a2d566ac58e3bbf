"""The public functions `score` and `score_files`: arguments are checked, then the table is scored.

A table is scored in memory, from files to files, or by Dask.
"""
