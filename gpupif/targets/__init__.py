"""Targets: what the risk of a table is to be, and what it is, of any measure against any attacker."""
