"""Treatments of a table: value maps, row rules and random ones, the same whatever the kind of table."""
