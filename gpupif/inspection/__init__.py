"""The inspection of a new table: the values of its columns, their likely meanings, and the roles that they may have."""
