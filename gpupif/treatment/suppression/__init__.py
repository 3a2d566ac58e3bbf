"""Suppression: cells and rows are removed by a condition on scores, or until criteria hold."""
