"""Suppression: cells and rows whose values are taken away, by their scores, or until targets hold and no further."""
