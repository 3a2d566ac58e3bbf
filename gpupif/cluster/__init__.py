"""Tables spread over the workers of a cluster, by Dask: two shuffles, and the engines in between."""
