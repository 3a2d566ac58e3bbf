"""Disclosure risk: of sensitive attributes and identities in a table, of the population behind it, before data."""
