"""Suppression: cells and rows whose values are taken away, by their scores, or until criteria hold and no further."""
