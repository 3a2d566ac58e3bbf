"""How the tests are laid out: what several of them share stands in tests/helpers."""

from __future__ import annotations

import ast

from tests.helpers.checkout import ROOT

FILES = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py"))


def imported(source):
    """Dotted names of all that a module imports, wherever it does."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_test_module_is_imported():
    found = {str(path): list(imported((ROOT / path).read_text())) for path in FILES}
    assert len(found) > 100
    of_tests = {
        path: [name for name in names if any(part.startswith(("test_", "conftest")) for part in name.split("."))]
        for path, names in found.items()
    }
    assert {path: names for path, names in of_tests.items() if names} == {}


def test_folders_hold_tests_or_helpers():
    """A file elsewhere would not be run."""
    scripts = {"benchmark.py", "compile_check.py", "conftest.py"}
    loose = [path for path in FILES if path.parts[1] != "helpers" and not path.name.startswith("test_")]
    assert {path.name for path in loose} <= scripts
