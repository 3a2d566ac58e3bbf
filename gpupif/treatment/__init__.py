"""Treatments of a table: value maps, suppression and random treatments, with equal results for every kind of table."""
