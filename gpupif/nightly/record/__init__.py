"""The state folder: the record of runs, kept scores, the lock, retention and verification."""
