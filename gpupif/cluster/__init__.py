"""Tables spread over the workers of a cluster, by Dask: each partition at home, two shuffles, the engines in between."""
