"""Releases: tables of counts, answers with noise, and audits of what they give away.

Public names of answers are in `__init__.pyi`, and are imported on first use.
"""

from ..utils.lazy_names import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
