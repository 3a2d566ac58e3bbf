"""Benchmarks that anyone can run: `python -m benchmarks.engines`."""
