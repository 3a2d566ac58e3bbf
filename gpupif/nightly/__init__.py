"""Risk recomputed every night: gates with limits, a record of all runs, and only what changed is read."""
