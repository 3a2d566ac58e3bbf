"""SUDA: rows that few of their values single out."""
