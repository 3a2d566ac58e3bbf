"""Engines take codes and give scores; see `base` for the interface, `cpu` for the one that runs everywhere."""
