"""Small tables to learn with, and a synthetic census of any size to try scoring on. All of it is invented."""

from .tables import census, csf_example, pif_example

__all__ = ["census", "csf_example", "pif_example"]
