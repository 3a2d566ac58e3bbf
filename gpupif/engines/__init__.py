"""Engines, which compute scores from codes. `base` has their interface; the engine in `cpu` runs on every machine."""
