"""Invented tables: small ones to learn with, and a synthetic census of any size to try scoring on."""

from .tables import census, csf_example, pif_example

__all__ = ["census", "csf_example", "pif_example"]
