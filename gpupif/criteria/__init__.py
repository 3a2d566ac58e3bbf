"""Criteria: limits on the risk of a table, read from text, and the values of the limited figures in a table."""
