"""Releases: counts, answers and workloads of queries that may leave the building. Their public names are in `__init__.pyi`, and imported on first use."""

from ..utils.lazy_names import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
