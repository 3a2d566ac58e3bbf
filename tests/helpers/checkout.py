"""Where this checkout lies."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
