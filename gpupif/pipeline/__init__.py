"""The pipeline: tasks on chunks and partitions of a table, which a graph executes here or on Dask."""
