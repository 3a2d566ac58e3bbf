"""A new table looked at: what its columns hold, what these look like, and which roles they may have."""
