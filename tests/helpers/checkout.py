"""Where this checkout lies, and its modules as Python reads them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
# The tests that read all modules run in one process, which reads each once.
reads_modules = pytest.mark.xdist_group("modules")


@cache
def nodes_of(file: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a module's syntax tree, the module first."""
    return tuple(ast.walk(ast.parse(file.read_text())))
