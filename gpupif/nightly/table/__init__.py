"""The table of a night: files or a query, of which only what changed is read."""
