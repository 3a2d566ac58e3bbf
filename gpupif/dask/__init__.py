"""Tables spread over the workers of a Dask cluster: two shuffles, and the engines in between."""
