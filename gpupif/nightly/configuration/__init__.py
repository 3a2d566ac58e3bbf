"""The configuration of nightly runs: its schema, read, checked, and written for the first time."""
