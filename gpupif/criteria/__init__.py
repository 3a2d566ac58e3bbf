"""Criteria: limits on the risk of a table, as text, and what a table has of what they limit."""
