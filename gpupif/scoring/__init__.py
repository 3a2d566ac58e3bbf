"""The public `score`: arguments checked, then scored in memory, from file to file, or by Dask."""
